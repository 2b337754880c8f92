// Package imagesource has the sources of images outside of the hosts, which resources share: container images, web servers, and files of
// the computer that runs Terraform.
package imagesource

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// The pull policies of Kubernetes.
const (
	pullIfNotPresent = "IfNotPresent"
	pullAlways       = "Always"
	pullNever        = "Never"
)

// architectures maps libvirt's names to those of container images where they differ.
var architectures = map[string]string{
	"x86_64": "amd64", "i686": "386", "aarch64": "arm64", "armv7l": "arm/v7", "armv6l": "arm/v6", "loongarch64": "loong64",
}

// Source is embedded in the model of a resource's source; one of these is set at most. Its methods are given
// the path of that attribute.
type Source struct {
	Container *Container `tfsdk:"container_image"`
	URL       *URL       `tfsdk:"url"`
	File      *File      `tfsdk:"file"`
}

// Container is the value of a ContainerAttribute.
type Container struct {
	Reference
	Path types.String `tfsdk:"path"`
}

// Reference is the value of a RootFilesystemAttribute.
type Reference struct {
	Image      types.String `tfsdk:"image"`
	PullPolicy types.String `tfsdk:"pull_policy"`
	Username   types.String `tfsdk:"username"`
	PasswordWO types.String `tfsdk:"password_wo"`
}

// URL is the value of a URLAttribute.
type URL struct {
	URL      types.String `tfsdk:"url"`
	Checksum types.String `tfsdk:"checksum"`
}

// File is the value of a FileAttribute.
type File struct {
	Path types.String `tfsdk:"path"`
}

// Check refuses what is invalid by itself, without access to files, hosts or registry.
func (s Source) Check(at path.Path, diags *diag.Diagnostics) {
	if s.Container != nil {
		s.Container.Check(at.AtName("container_image"), diags)
	}
	if u := s.URL; u != nil && !u.URL.IsUnknown() {
		given := image.URL{URL: u.URL.ValueString()}
		if err := given.Check(); err != nil {
			diags.AddAttributeError(at.AtName("url").AtName("url"), "Not the URL of an image", err.Error())
		} else if given.Checksum = u.Checksum.ValueString(); !u.Checksum.IsUnknown() {
			if err := given.Check(); err != nil {
				diags.AddAttributeError(at.AtName("url").AtName("checksum"), "Not a checksum", err.Error())
			}
		}
	}
}

// CheckFile refuses a file that is missing, or by its beginning no image for that volume.
func (s Source) CheckFile(ctx context.Context, at path.Path, spec content.Spec, diags *diag.Diagnostics) {
	if s.File == nil || s.File.Path.IsUnknown() {
		return
	}
	is, length, err := image.LocalFile{Path: s.File.Path.ValueString()}.Head(ctx)
	if err == nil {
		err = spec.Fits(is, length)
	}
	refuseFile(err, at, diags)
}

// CheckPath refuses a file that is missing.
func (s Source) CheckPath(at path.Path, diags *diag.Diagnostics) {
	if s.File == nil || s.File.Path.IsUnknown() {
		return
	}
	refuseFile(image.LocalFile{Path: s.File.Path.ValueString()}.Check(), at, diags)
}

func refuseFile(err error, at path.Path, diags *diag.Diagnostics) {
	if err == nil {
		return
	}
	text := err.Error() + "."
	if errors.Is(err, fs.ErrNotExist) {
		text += " If this apply is to make it, take its path from what is known only then, such as the output of a terraform_data."
	}
	diags.AddAttributeError(at.AtName("file").AtName("path"), "Unusable file", text)
}

// IsElsewhere reports whether the file of what was made from was is not there, and may have been in another folder of another computer:
// then what was fetched is not known to have changed.
func (s Source) IsElsewhere(was Source) bool {
	if s.File == nil || was.File == nil || s.File.Path.IsUnknown() {
		return false
	}
	err := image.LocalFile{Path: s.File.Path.ValueString()}.Check()
	return errors.Is(err, fs.ErrNotExist) && filepath.Base(s.File.Path.ValueString()) == filepath.Base(was.File.Path.ValueString())
}

// Host is where a volume with a source is to be.
type Host interface {
	content.Host
	Architecture(ctx context.Context) (string, error)
}

// Judge refuses what the creation of a volume with this source would refuse, as far as that is known before: all of a file, and the
// beginning of what is downloaded.
func (s Source) Judge(ctx context.Context, tags *image.Tags, h Host, spec content.Spec) error {
	architecture := func(ctx context.Context) (string, error) { return h.Architecture(ctx) }
	if _, err := s.Prepare(ctx, tags, architecture, &spec); err != nil {
		return err
	}
	if s.File != nil {
		is, length, err := image.LocalFile{Path: s.File.Path.ValueString()}.Judge(ctx)
		return cmp.Or(err, spec.Fits(is, length))
	}
	if s.Container != nil {
		has, err := spec.CheckBase(ctx, h)
		if has || err != nil || s.Container.PullPolicy.ValueString() == pullNever {
			return err
		}
		spec.Format = "" // that of the overlay
	}
	from := cmp.Or(spec.Content, spec.Base)
	if from == nil {
		return nil
	}
	opened, err := from.Open(ctx)
	if err != nil {
		return err
	}
	is, err := image.HeaderOf(opened)
	return cmp.Or(err, spec.Fits(is, 0))
}

// PlanDigest is the digest of a wholly known source if it is known before the content is fetched, or else unknown; null for a URL without a
// checksum, and without a source.
func (s Source) PlanDigest(ctx context.Context, at path.Path, diags *diag.Diagnostics) types.String {
	switch {
	case s.Container != nil:
		return s.Container.PlanDigest()
	case s.URL != nil:
		return s.URL.checksum()
	case s.File != nil:
		digest, err := image.LocalFile{Path: s.File.Path.ValueString()}.Hash(ctx)
		if err == nil {
			return types.StringValue(digest)
		}
		refuseFile(err, at, diags)
		return types.StringUnknown()
	}
	return types.StringNull()
}

// OtherContent are the attributes whose change makes it other content than was fetched: the configured reference, URL or checksum. A tag or
// a URL without a checksum that leads to other content by now is no change. Files are told by their digests.
func (s Source) OtherContent(was Source, fetched types.String, at path.Path) (paths path.Paths) {
	switch {
	case s.Container != nil && was.Container != nil:
		if differs(was.Container.Image, s.Container.Image) {
			paths = append(paths, at.AtName("container_image").AtName("image"))
		}
		if differs(was.Container.Path, s.Container.Path) {
			paths = append(paths, at.AtName("container_image").AtName("path"))
		}
	case s.URL != nil && was.URL != nil:
		paths = s.URL.otherFile(*was.URL, fetched, at.AtName("url"))
	}
	return paths
}

// otherFile are the attributes whose change makes it another file than the fetched one. The digest is null if the file was fetched without
// a checksum: a checksum that is configured later proves nothing about that file.
func (u URL) otherFile(was URL, proven types.String, at path.Path) path.Paths {
	before := was.checksum()
	if !proven.IsNull() {
		before = lower(proven)
	}
	switch { // two URLs with one checksum are one file
	case !before.IsNull() && !u.Checksum.IsNull() && differs(before, u.checksum()):
		return path.Paths{at.AtName("checksum")}
	case (proven.IsNull() || u.Checksum.IsNull()) && differs(was.URL, u.URL):
		return path.Paths{at.AtName("url")}
	}
	return nil
}

// checksum is the checksum in lower case, as digests are written.
func (u URL) checksum() types.String { return lower(u.Checksum) }

func lower(s types.String) types.String {
	if s.IsNull() || s.IsUnknown() {
		return s
	}
	return types.StringValue(strings.ToLower(s.ValueString()))
}

// differs reports whether a configured value is known to have changed.
func differs(was, is types.String) bool { return !is.IsUnknown() && !is.Equal(was) }

// Prepare sets the base or content of a volume with this source, and returns the content's digest. hostArchitecture is libvirt's name of
// it.
func (s Source) Prepare(ctx context.Context, tags *image.Tags, hostArchitecture func(context.Context) (string, error),
	spec *content.Spec,
) (digest string, err error) {
	switch {
	case s.Container != nil:
		return s.Container.prepare(ctx, tags, hostArchitecture, spec)
	case s.URL != nil:
		from := image.URL{URL: s.URL.URL.ValueString(), Checksum: s.URL.checksum().ValueString(), Limit: limit(spec.Capacity)}
		spec.Content = &content.Image{ID: cmp.Or(from.Checksum, from.URL), Open: from.Open}
		return from.Checksum, nil
	case s.File != nil:
		from := image.LocalFile{Path: s.File.Path.ValueString(), Limit: limit(spec.Capacity)}
		if from.Digest, err = from.Hash(ctx); err != nil {
			return "", err
		}
		spec.Content = &content.Image{ID: from.Digest, Open: from.Open}
		is, length, err := from.Head(ctx)
		return from.Digest, cmp.Or(err, spec.Fits(is, length)) // before all of it is uploaded
	}
	return "", nil
}

func (c Container) prepare(ctx context.Context, tags *image.Tags, hostArchitecture func(context.Context) (string, error),
	spec *content.Spec,
) (digest string, err error) {
	from, digest, err := c.resolve(ctx, tags)
	if err != nil {
		return "", err
	}
	from.Path, from.Limit = c.Path.ValueString(), limit(spec.Capacity)
	policy := c.PullPolicy.ValueString()
	spec.Base = &content.Image{
		ID: digest + " /" + from.Path,
		Open: func(ctx context.Context) (io.ReadCloser, error) {
			if policy == pullNever {
				return nil, errors.New("it is not on the host, and with pull_policy = \"Never\" the registry is not asked")
			}
			if from.Arch, err = architectureOf(ctx, hostArchitecture); err != nil {
				return nil, err
			}
			return from.Open(ctx, digest)
		},
	}
	return digest, nil
}

func architectureOf(ctx context.Context, host func(context.Context) (string, error)) (string, error) {
	arch, err := host(ctx)
	return cmp.Or(architectures[arch], arch), err
}

// limit is the maximal size in bytes of an unpacked image for a volume of that size. An image file with a format has more bytes than its
// guest sees.
func limit(size int64) int64 {
	if size == 0 {
		return 0
	}
	return max(image.MaxUnpacked, size+size/8)
}
