package disk

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// planDigest is the digest of the content if it is known before the content is fetched, or else unknown. It only reads.
func (r *disk) planDigest(ctx context.Context, plan model, diags *diag.Diagnostics) types.String {
	if plan.isUndecided() || plan.kind() != "" && plan.kind() != fromVolume && !plan.isSourceKnown(ctx) {
		return types.StringUnknown()
	}
	s := plan.source(ctx, diags)
	switch {
	case s.Container != nil:
		if digest, ok := (image.Container{Reference: s.Container.Image.ValueString()}).IsPinned(); ok {
			return types.StringValue(digest)
		}
		return types.StringUnknown()
	case s.URL != nil:
		return s.URL.checksum()
	case s.File != nil:
		return planFileDigest(ctx, s.File.Path.ValueString(), diags)
	case s.CloudInit != nil:
		return r.planSeedDigest(ctx, *s.CloudInit, diags)
	}
	return types.StringNull()
}

// planNewDigest is the planned digest of a new disk. It is unknown for files and secrets, which may change until the disk is created: the
// content at that time counts, and Terraform accepts no other value than the planned one.
func (r *disk) planNewDigest(ctx context.Context, plan model, diags *diag.Diagnostics) types.String {
	if plan.kind() == fromFile {
		checkFile(ctx, plan.source(ctx, diags).File, diags)
		return types.StringUnknown()
	}
	digest := r.planDigest(ctx, plan, diags)
	if plan.kind() == fromCloudInit {
		return types.StringUnknown()
	}
	return digest
}

// planOwnDigest is the planned digest of an existing disk. Only files, secrets and inline content can be compared again. A file or secret
// that was deleted since is not needed any more.
func (r *disk) planOwnDigest(ctx context.Context, plan, state model, diags *diag.Diagnostics) types.String {
	if kind := plan.kind(); kind != fromFile && kind != fromCloudInit && !state.isImported() {
		return state.Digest
	}
	digest := r.planDigest(ctx, plan, diags)
	if digest.IsUnknown() && plan.Source.Equal(state.Source) {
		return state.Digest
	}
	return digest
}

// settleDigest sets a digest that was unknown in the plan.
func (r *disk) settleDigest(ctx context.Context, plan *model, state model, diags *diag.Diagnostics) {
	if !plan.Digest.IsUnknown() {
		return
	}
	var err error
	digest, s := state.Digest.ValueString(), plan.source(ctx, diags)
	switch {
	case s.File != nil:
		digest, err = image.LocalFile{Path: s.File.Path.ValueString()}.Hash(ctx)
	case s.CloudInit != nil:
		digest, err = s.CloudInit.digest(ctx, r.listedVersions)
	}
	if err != nil {
		addError(diags, *plan, "What the disk is to be made from is not known", err)
	}
	plan.Digest = tfvalue.OrNull(digest)
}

// checkFile refuses a file that can't be opened, without reading all of it.
func checkFile(ctx context.Context, f *fileModel, diags *diag.Diagnostics) {
	if f == nil || f.Path.IsUnknown() {
		return
	}
	content, err := image.LocalFile{Path: f.Path.ValueString()}.Open(ctx)
	if err == nil {
		err = content.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		addUnreadable(diags, err)
	}
}

func addUnreadable(diags *diag.Diagnostics, err error) {
	diags.AddAttributeError(childPath(fromFile).AtName("path"), "Unreadable image", err.Error())
}

// planFileDigest is the digest of a file; unknown if the file does not exist, because it may be created in the same apply.
func planFileDigest(ctx context.Context, name string, diags *diag.Diagnostics) types.String {
	digest, err := image.LocalFile{Path: name}.Hash(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return types.StringUnknown()
	}
	if err != nil {
		addUnreadable(diags, err)
		return types.StringUnknown()
	}
	return types.StringValue(digest)
}

// listedVersions reads the versions for all seeds together; they may be some seconds old.
func (r *disk) listedVersions() (secretVersions, error) { return r.backend.Lists() }

// planSeedDigest is the digest of a seed; unknown if one of its secrets does not exist yet.
func (r *disk) planSeedDigest(ctx context.Context, c cloudInitModel, diags *diag.Diagnostics) types.String {
	if !r.backend.Ready() {
		return types.StringUnknown()
	}
	digest, err := c.digest(ctx, r.listedVersions)
	switch {
	case apierrors.IsNotFound(err):
		return types.StringUnknown()
	case err != nil:
		diags.AddAttributeError(childPath(fromCloudInit), "What is to be in the seed is not known", err.Error())
		return types.StringUnknown()
	}
	return types.StringValue(digest)
}

// otherContent are the attributes whose change makes it other content: the configured reference, checksum, file or seed. A tag or a URL
// without a checksum that leads to other content by now is no change.
func (m model) otherContent(ctx context.Context, state model, diags *diag.Diagnostics) (paths path.Paths) {
	if m.isUndecided() || state.isImported() || m.kind() != state.kind() {
		return nil // another kind is another master
	}
	was, is := state.source(ctx, diags), m.source(ctx, diags)
	switch {
	case is.Container != nil && was.Container != nil:
		if differs(was.Container.Image, is.Container.Image) {
			paths = append(paths, childPath(fromContainer).AtName("image"))
		}
		if differs(was.Container.Path, is.Container.Path) {
			paths = append(paths, childPath(fromContainer).AtName("path"))
		}
	case is.URL != nil && was.URL != nil:
		paths = is.URL.otherFile(*was.URL, state.Digest)
	case is.File != nil, is.CloudInit != nil:
		if differs(state.Digest, m.Digest) {
			paths = append(paths, path.Root("digest"))
		}
	}
	return paths
}

// otherFile are the attributes whose change makes it another file than the fetched one. The digest is null if the file was fetched without
// a checksum: a checksum that is configured later proves nothing about that file.
func (u urlModel) otherFile(was urlModel, proven types.String) path.Paths {
	before := was.checksum()
	if !proven.IsNull() {
		before = lower(proven)
	}
	switch { // two URLs with one checksum are one file
	case !before.IsNull() && !u.Checksum.IsNull() && differs(before, u.checksum()):
		return path.Paths{childPath(fromURL).AtName("checksum")}
	case (proven.IsNull() || u.Checksum.IsNull()) && differs(was.URL, u.URL):
		return path.Paths{childPath(fromURL).AtName("url")}
	}
	return nil
}

// checksum is the checksum in lower case, as digests are written.
func (u urlModel) checksum() types.String { return lower(u.Checksum) }

func lower(s types.String) types.String {
	if s.IsNull() || s.IsUnknown() {
		return s
	}
	return types.StringValue(strings.ToLower(s.ValueString()))
}

// differs reports whether a configured value is known to have changed.
func differs(was, is types.String) bool { return !is.IsUnknown() && !is.Equal(was) }
