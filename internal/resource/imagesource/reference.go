package imagesource

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// Check refuses what is invalid by itself, without access to the registry.
func (r Reference) Check(at path.Path, diags *diag.Diagnostics) {
	if r.Image.IsUnknown() {
		return
	}
	given := image.Container{Reference: r.Image.ValueString()}
	_, pinned := given.IsPinned()
	if err := given.Check(); err != nil {
		diags.AddAttributeError(at.AtName("image"), "Not a container image", err.Error())
	} else if r.PullPolicy.ValueString() == pullNever && !pinned {
		diags.AddAttributeError(at.AtName("pull_policy"), "A tag needs the registry",
			"Only the registry knows what a tag stands for, and with pull_policy = \"Never\" it is not asked. Name the image by its "+
				"digest: repository@sha256:<hex>.")
	}
}

// PlanDigest is the digest in a reference that is wholly known, or else unknown.
func (r Reference) PlanDigest() types.String {
	if digest, ok := (image.Container{Reference: r.Image.ValueString()}).IsPinned(); ok {
		return types.StringValue(digest)
	}
	return types.StringUnknown()
}

// IsOther reports whether another image is known to be configured.
func (r Reference) IsOther(was Reference) bool { return differs(was.Image, r.Image) }

// Pinned is the reference with that digest instead of its tag.
func (r Reference) Pinned(digest string) Reference {
	repository, _, _ := strings.Cut(r.Image.ValueString(), "@")
	if at := strings.LastIndex(repository, ":"); at > strings.LastIndex(repository, "/") {
		repository = repository[:at]
	}
	r.Image = types.StringValue(repository + "@" + digest)
	return r
}

// resolve asks the registry for the digest, as far as the pull policy wants it.
func (r Reference) resolve(ctx context.Context, tags *image.Tags) (from image.Container, digest string, err error) {
	from = image.Container{Reference: r.Image.ValueString(), Username: r.Username.ValueString(), Password: r.PasswordWO.ValueString()}
	digest, pinned := from.IsPinned()
	switch {
	case r.PullPolicy.ValueString() == pullAlways:
		digest, err = from.Resolve(ctx)
	case !pinned:
		digest, err = tags.Resolve(ctx, from)
	}
	return from, digest, err
}

// IsPulled reports whether the registry may be asked; if not, the digest is in the reference.
func (r Reference) IsPulled() bool { return r.PullPolicy.ValueString() != pullNever }

// PrepareRootFS sets the layers of a volume with the root file system of the image, and returns the image's digest. The registry is always
// asked which layers the image has.
func (r Reference) PrepareRootFS(
	ctx context.Context, tags *image.Tags, hostArchitecture func(context.Context) (string, error), spec *content.Spec,
) (is image.RootFS, digest string, err error) {
	from, digest, err := r.resolve(ctx, tags)
	if err == nil {
		from.Arch, err = architectureOf(ctx, hostArchitecture)
	}
	if err == nil {
		is, err = from.RootFS(ctx, digest)
	}
	spec.Layers, spec.Root = is.Layers, is
	return is, digest, err
}
