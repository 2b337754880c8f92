package volumebinding

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// secretOf is the write-only secret of a direct source, which only the configuration has.
func secretOf(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) types.String {
	var m model
	if diags.Append(tfvalue.Get(ctx, config.Schema, config.Raw, &m)...); diags.HasError() {
		return types.StringNull()
	}
	if _, d := m.direct(ctx, diags); d != nil {
		_, secret := d.login()
		return secret
	}
	return types.StringNull()
}

// need is the binding's requirements of a claim.
func (r *binding) need(ctx context.Context, m model, c claimModel, diags *diag.Diagnostics) claim.Need {
	n := claim.Need{AccessMode: volume.AccessMode(m.AccessMode.ValueString()), Options: c.Options(ctx, diags)}
	for _, key := range m.hostKeys(ctx, diags) {
		n.Nodes = append(n.Nodes, r.Provider.Hosts.Node(key))
	}
	switch {
	case !c.SelectNode.IsNull() && !c.SelectNode.ValueBool():
		n.NotSelecting = "select_node = false"
	case !r.Provider.ReservesClaims:
		n.NotSelecting = "kubernetes.reserve_claims = false"
	}
	return n
}

// resolveForPlan resolves the source for a plan: it only reads, and does not wait. known is false when the source is unknown or not ready,
// which is a warning; a permanent failure is an error.
func (r *binding) resolveForPlan(ctx context.Context, m model, diags *diag.Diagnostics) (found source.Resolved, known bool) {
	var err error
	at := sourcePath
	if c := m.claim(ctx, diags); c != nil {
		at = at.AtName(claimSource)
		if !m.isKnown(ctx, claimSource) {
			return found, false
		}
		found, err = r.resolveClaim(ctx, m, *c, diags)
	} else if name, d := m.direct(ctx, diags); d != nil && m.isKnown(ctx, name, writeOnly...) {
		at = at.AtName(name)
		found, err = r.resolveDirect(ctx, d, given{later: true}, diags)
	} else {
		return found, false
	}
	if err == nil {
		err = checkUse(ctx, m, found, diags)
	}
	var notReady *source.NotReady
	if errors.As(err, &notReady) {
		text := fmt.Sprintf("%s.\n\nThe plan leaves the volume of binding %s open. What is missing must be there when the apply comes to "+
			"it",
			err, m.Name.ValueString())
		if at.Equal(sourcePath.AtName(claimSource)) {
			text += "; a claim that is only not bound, or not filled, yet is waited for"
		}
		diags.AddAttributeWarning(at, "The volume is not there yet", text+".")
		return found, false
	}
	addSourceError(diags, "The volume can't be bound", at, err)
	addWarnings(diags, at, found.Warnings)
	return found, err == nil
}

// resolveClaim resolves a claim without waiting for it.
func (r *binding) resolveClaim(ctx context.Context, m model, c claimModel, diags *diag.Diagnostics) (source.Resolved, error) {
	client, err := r.Provider.Cluster()
	if err != nil {
		return source.Resolved{}, err
	}
	found, _, err := claim.Resolve(ctx, client, c.Ref(), r.need(ctx, m, c, diags))
	return found, err
}

// resolveDirect resolves a direct source with its credentials. The Kubernetes secret is read at plan as well, because it has the user,
// which is a part of the volume.
func (r *binding) resolveDirect(ctx context.Context, d directModel, g given, diags *diag.Diagnostics) (source.Resolved, error) {
	from := d.source(ctx, g, diags)
	if ref, _ := d.login(); ref.IsNull() {
		return from.Resolve(ctx, nil)
	}
	client, err := r.Provider.Cluster()
	if err != nil {
		return source.Resolved{}, err
	}
	return from.Resolve(ctx, client)
}

// checkUse refuses to bind a read-only volume for writing, and to create a disk.img where that is impossible.
func checkUse(ctx context.Context, m model, found source.Resolved, diags *diag.Diagnostics) error {
	top := found.Volume.Images[0]
	if found.ReadOnly && m.AccessMode.ValueString() != string(volume.ReadShared) {
		return source.Errorf("", "%s can only be read: set access_mode to read-shared, and put a virtclaim_disk with a copy_mode over it "+
			"where a machine has to write", top.Name)
	}
	if top.Format != "raw" && !top.IsFolder() && m.AccessMode.ValueString() == string(volume.WriteShared) {
		return source.Errorf("format", "a %s image can't be bound write-shared: each machine would keep a copy of its tables. %s",
			top.Format,
			image.Convert(top.Format, "raw"))
	}
	c := m.claim(ctx, diags)
	if c != nil && !c.Format.IsNull() && !found.DiskImage {
		return source.Errorf("format", "the volume is a device, which is always raw: remove format")
	}
	switch {
	case c == nil || !c.CreateDiskImage.ValueBool():
		return nil
	case !found.DiskImage:
		return source.Errorf("create_disk_image", "the volume is a device, which needs no disk.img: remove create_disk_image")
	case top.Type != "file":
		return source.Errorf("create_disk_image", "QEMU opens %s itself, but can't make it: mount the volume on the hosts and set "+
			"mount_path, or put a disk.img there by other means", top.Name)
	}
	return nil
}

// await resolves the source for an apply, and records in own which claim it was. It has a claim provisioned that waits
// for a consumer, and waits for one to be bound; everything else is an error.
func (r *binding) await(ctx context.Context, m model, secret types.String, own *privateState,
	diags *diag.Diagnostics,
) (found source.Resolved, ok bool) {
	var err error
	at := sourcePath
	if c := m.claim(ctx, diags); c != nil {
		at = at.AtName(claimSource)
		found, err = r.awaitClaim(ctx, m, *c, own, diags)
	} else if name, d := m.direct(ctx, diags); d != nil {
		at = at.AtName(name)
		found, err = r.resolveDirect(ctx, d, given{secret: secret}, diags)
	}
	if err == nil {
		err = checkUse(ctx, m, found, diags)
	}
	if own.Answer != nil && found.Credentials == nil {
		found.Credentials = &marker
	}
	addSourceError(diags, "The volume can't be bound", at, err)
	addWarnings(diags, at, found.Warnings)
	return found, err == nil && !diags.HasError()
}

func (r *binding) awaitClaim(ctx context.Context, m model, c claimModel, own *privateState,
	diags *diag.Diagnostics,
) (source.Resolved, error) {
	client, err := r.Provider.Cluster()
	if err != nil {
		return source.Resolved{}, err
	}
	found, info, err := claim.Await(ctx, client, c.Ref(), r.need(ctx, m, c, diags))
	if err == nil {
		own.note(info)
	}
	return found, err
}

// refreshVolume updates the volume from the source. The last volume is kept, with a warning, if the source has none; only a cluster that
// does not answer is an error. A direct source has nothing to refresh but its secret.
func (r *binding) refreshVolume(ctx context.Context, state *model, own *privateState, diags *diag.Diagnostics) bool {
	c := state.claim(ctx, diags)
	if c == nil {
		return r.refreshSecretRef(ctx, *state, own, diags)
	}
	last, known, d := tfvalue.VolumeFrom(state.Volume)
	diags.Append(d...)
	client, err := r.Provider.Lists()
	if err != nil || !known {
		addSourceError(diags, "The binding could not be read", sourcePath.AtName(claimSource), err)
		return err == nil
	}
	seen, err := claim.Refresh(ctx, client, c.Ref(), c.Options(ctx, diags), claim.Last{UID: own.ClaimUID, Auth: last.Images[0].Auth})
	if err != nil {
		addSourceError(diags, "The binding could not be read", sourcePath.AtName(claimSource), err)
		return false
	}
	addWarnings(diags, sourcePath.AtName(claimSource), seen.Warnings)
	if seen.Version != "" {
		own.Version = seen.Version
	}
	if own.VolumeUID == "" && own.ClaimUID != "" && !own.Remade {
		own.VolumeUID = seen.VolumeUID // an older virtclaim did not record it
	}
	if seen.Volume != nil {
		now := state.held(*seen.Volume, last.Images[0].Hosts, state.instance(ctx, state, *own, diags))
		if now.Capacity == nil {
			now.Capacity = last.Capacity
		}
		state.Volume = tfvalue.VolumeObject(now, tfvalue.Unknowns{})
	}
	return !diags.HasError()
}

// refreshSecretRef checks whether the Kubernetes secret of a direct source has changed.
func (r *binding) refreshSecretRef(ctx context.Context, state model, own *privateState, diags *diag.Diagnostics) bool {
	name, d := state.direct(ctx, diags)
	if d == nil {
		return !diags.HasError()
	}
	login, _ := d.login()
	ref := secretRef(ctx, login, diags)
	if ref == nil {
		return !diags.HasError()
	}
	at := sourcePath.AtName(name).AtName("secret_ref")
	client, err := r.Provider.Lists()
	if err == nil {
		var version, warning string
		version, warning, err = source.CurrentVersion(ctx, client, *ref)
		if version != "" {
			own.Version = version
		}
		if warning != "" {
			addWarnings(diags, at, []string{warning})
		}
	}
	addSourceError(diags, "The binding could not be read", at, err)
	return err == nil
}

func addWarnings(diags *diag.Diagnostics, at path.Path, warnings []string) {
	for _, w := range warnings {
		diags.AddAttributeWarning(at, "About the source of the binding", w)
	}
}
