package disk

import (
	"context"
	"fmt"

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
	if c := s.composed(); c != nil {
		return r.planComposedDigest(ctx, c, childPath(plan.kind()), diags)
	}
	if s.Root != nil {
		return s.Root.PlanDigest()
	}
	return s.PlanDigest(ctx, path.Root("source"), diags)
}

// planNewDigest is the planned digest of a new disk. It is unknown for files and secrets, which may change until the disk is created: the
// content at that time counts, and Terraform accepts no other value than the planned one.
func (r *disk) planNewDigest(ctx context.Context, plan model, diags *diag.Diagnostics) types.String {
	if plan.kind() == fromFile {
		plan.source(ctx, diags).CheckFile(ctx, path.Root("source"), plan.spec(ctx, "", diags), diags)
		return types.StringUnknown()
	}
	digest := r.planDigest(ctx, plan, diags)
	if plan.isComposed() {
		return types.StringUnknown()
	}
	return digest
}

// planOwnDigest is the planned digest of an existing disk. Only files, secrets and inline content can be compared again. A file or secret
// that was deleted since is not needed any more; the file may have been in another folder of another computer.
func (r *disk) planOwnDigest(ctx context.Context, plan, state model, diags *diag.Diagnostics) types.String {
	is := plan.source(ctx, diags)
	if plan.kind() != fromFile && !plan.isComposed() && !state.isImported() {
		return state.Digest
	}
	if is.IsElsewhere(state.source(ctx, diags).Source) {
		if !plan.Source.Equal(state.Source) {
			diags.AddAttributeWarning(childPath(fromFile).AtName("path"),
				fmt.Sprintf("The file of disk %s is not there", state.ID.ValueString()),
				"It is taken for the one that the disk was made from, in another folder, and the disk stays as it is.")
		}
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
	case s.composed() != nil:
		digest, err = digestOf(ctx, s.composed(), r.listedVersions)
	}
	if err != nil {
		addError(diags, *plan, "What the disk is to be made from is not known", err)
		digest = state.Digest.ValueString() // it is not another one
	}
	plan.Digest = tfvalue.OrNull(digest)
}

// listedVersions reads the versions for all seeds together; they may be some seconds old.
func (r *disk) listedVersions() (secretVersions, error) { return r.Provider.Lists() }

// planComposedDigest is the digest of composed content; unknown if one of its secrets does not exist yet.
func (r *disk) planComposedDigest(ctx context.Context, c composed, at path.Path, diags *diag.Diagnostics) types.String {
	if !r.Provider.Ready() {
		return types.StringUnknown()
	}
	digest, err := digestOf(ctx, c, r.listedVersions)
	switch {
	case apierrors.IsNotFound(err):
		return types.StringUnknown()
	case err != nil:
		diags.AddAttributeError(at, "The source could not be read", err.Error())
		return types.StringUnknown()
	}
	return types.StringValue(digest)
}

// otherContent are the attributes whose change makes it other content: the configured reference, checksum, file or seed. A tag or a URL
// without a checksum that leads to other content by now is no change.
func (m model) otherContent(ctx context.Context, state model, diags *diag.Diagnostics) path.Paths {
	if m.isUndecided() || state.isImported() || m.kind() != state.kind() {
		return nil // another kind is another master
	}
	was, is := state.source(ctx, diags), m.source(ctx, diags)
	if (is.File != nil || is.composed() != nil) && !m.Digest.IsUnknown() && !m.Digest.Equal(state.Digest) {
		return path.Paths{path.Root("digest")}
	}
	if is.Root != nil && was.Root != nil && is.Root.IsOther(*was.Root) {
		return path.Paths{childPath(fromRoot).AtName("image")}
	}
	return is.OtherContent(was.Source, state.Digest, path.Root("source"))
}
