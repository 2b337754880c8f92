package disk

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// readImported returns the volume of a newly imported disk with the format that it is to be opened in, its identity, and the shared image
// that its header names, if any. The pool's scan is not trusted, because it takes any header that a guest wrote for the format. What is
// only listed is not adopted, and has no identity.
func (m model) readImported(ctx context.Context, h *host.Host, v host.StorageVolume, adopts bool,
) (is host.StorageVolume, id string, below []volume.Image, err error) {
	shown, err := content.FormatOf(ctx, h, v)
	if err == nil {
		v, below, err = m.openedAs(ctx, h, v, shown.Name)
	}
	if err != nil {
		return v, "", below, err
	}
	note := v.Format
	if shown.Refused != nil {
		note = "" // whether it is raw is decided by the configuration
	}
	if adopts {
		id, err = content.Adopt(ctx, h, v, note)
	}
	if shown.Refused != nil && shown.Domain == "" {
		v.Format = ""
	}
	return v, id, below, err
}

// openedAs is the volume opened in that format.
func (m model) openedAs(ctx context.Context, h *host.Host, v host.StorageVolume,
	format string,
) (host.StorageVolume, []volume.Image, error) {
	if format == "raw" {
		v.Format, v.Backing = "raw", ""
		return v, nil, nil
	}
	if err := h.Rescan(ctx, v.Pool); err != nil { // the pool may have scanned the volume before it had this header
		return v, nil, err
	}
	v, err := h.Volume(ctx, v.Pool, v.Name)
	if err != nil {
		return v, nil, err
	}
	if v.Format = format; !content.IsBase(v.Backing) {
		return v, nil, nil
	}
	bases, err := content.BasesOf(ctx, h, v)
	return v, m.shared(bases...), err
}

// adoptFormat sets the format of an imported disk from the configuration, once, as far as the host allows it: raw always, qcow2 only if the
// header was verified. Without a configured format a refused header is an error: only the user knows whether a guest wrote it or it is a
// foreign image.
func (r *disk) adoptFormat(ctx context.Context, asked types.String, state *model, diags *diag.Diagnostics) {
	if !state.isImported() || !r.Provider.Ready() || asked.IsUnknown() || state.Volume.IsNull() {
		return
	}
	h := r.host(*state, diags)
	if diags.HasError() {
		return
	}
	v, err := h.Volume(ctx, state.Pool.ValueString(), state.Name.ValueString())
	var is content.Format
	if err == nil {
		is, err = content.FormatOf(ctx, h, v)
	}
	at, id := path.Root("format"), state.ID.ValueString()
	switch {
	case err != nil:
		addError(diags, *state, "The disk could not be read", err)
	case asked.ValueString() == "raw" && is.Name != "raw" && is.Domain != "":
		diags.AddAttributeError(at, "Another format than the disk has",
			fmt.Sprintf("Disk %s is %s: %s. Set format = %q.", id, is.Name, is, is.Name))
	case asked.ValueString() == "raw" && state.Format.ValueString() != "raw":
		diags.AddAttributeWarning(at, "The imported disk is opened as raw", fmt.Sprintf("Disk %s begins as an image does. Its guest "+
			"will see that head, and may overwrite it. This is right if a guest wrote it to a raw disk.", id))
		v.Format, v.Backing = "raw", ""
		state.Volume = types.ObjectNull(tfvalue.VolumeTypes)
		seen, err := content.See(ctx, h, v, v.Format)
		if err != nil {
			addError(diags, *state, "The disk could not be read", err)
			return
		}
		state.read(ctx, v, seen.ID, nil, diags)
	case is.Refused != nil && is.Domain != "":
		diags.AddAttributeError(at, "The imported disk can't be opened", fmt.Sprintf("Disk %s is an image that domain %s opens as %s, "+
			"and that a disk can't be: %s. %s", id, is.Domain, is.Name, is.Refused, image.Convert(is.Name, "qcow2")))
	case asked.IsNull() && is.Refused != nil:
		diags.AddAttributeError(at, "The format of the imported disk is not known", fmt.Sprintf("Disk %s begins as an image does that "+
			"can't be opened: %s. If it is a raw disk whose guest wrote that, set format = \"raw\". If not, replace the volume by an "+
			"image that needs no other file. %s", id, is.Refused, image.Convert("", "qcow2")))
	case asked.ValueString() != "raw" && is.Name == "raw" && (asked.ValueString() == "qcow2" || state.Format.ValueString() != "raw"):
		diags.AddAttributeError(at, "The imported disk is raw",
			fmt.Sprintf("Disk %s can't be opened as qcow2: %s. Set format = \"raw\".", id, is))
	}
}

// noteRaw records on the host that an imported disk is raw if its configuration has decided that: an import trusts no header.
func noteRaw(ctx context.Context, h *host.Host, plan, state model, diags *diag.Diagnostics) error {
	own, known := state.made(ctx, diags)
	if !known || plan.Format.ValueString() != "raw" {
		return nil
	}
	v, err := h.Volume(ctx, state.Pool.ValueString(), state.Name.ValueString())
	if err = content.Described(err, own.Images[0].Format); err != nil {
		return err
	}
	return content.NoteRaw(ctx, h, v, own.Images[0])
}
