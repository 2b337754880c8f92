package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// checkFormat refuses a volume whose header is not of the format that it is to be opened as: a guest with a qcow2 image as raw would see
// the header and overwrite its tables. A disk that a machine already has as raw stays raw, because its guest may have written the header,
// unless that machine has another file.
func (r *binding) checkFormat(ctx context.Context, m model, v volume.Volume, key string, head []byte, known knowledge,
	diags *diag.Diagnostics,
) error {
	_, asked := m.format(ctx, diags)
	top := v.Images[0]
	is, err := image.Probe(head)
	isGood := err == nil && is.Format == top.Format
	if len(head) == 0 || asked == "raw" || isGood && asked == "" {
		return nil
	}
	var user guard.Use
	var isRaw bool
	var failed error
	if known != madeAgain {
		user, isRaw, failed = r.rawUser(ctx, top)
	}
	if failed != nil && asked == "qcow2" {
		return fmt.Errorf("whether a machine has %s as raw is not known: %w", top.Name, failed)
	}
	if isRaw && asked == "qcow2" {
		return source.Errorf("format", "domain %s on host %s opens %s as raw, so that its guest may have written what it begins with: "+
			"remove it from there first, or leave format out", user.Domain, user.Host, top.Name)
	}
	if isRaw || isGood {
		return nil
	}
	const raw = "If a guest wrote this to its raw disk, set format = \"raw\""
	if err != nil { // the error says what to do with such an image
		return source.Errorf("format", "host %s: %s: it is to be opened as %s: %w. %s", key, top.Name, top.Format, err, raw)
	}
	remedy := image.Convert(is.Format, top.Format)
	if asked == "" && m.claim(ctx, diags) == nil && top.Type == "file" {
		remedy = "Set format = \"qcow2\" to open it as that. " + remedy
	}
	return source.Errorf("format", "host %s: %s is a %s image, and is to be opened as %s. %s. %s", key, top.Name, is.Format, top.Format,
		raw, remedy)
}

// rawUser finds a domain that has the image as raw.
func (r *binding) rawUser(ctx context.Context, top volume.Image) (found guard.Use, ok bool, failed error) {
	for _, key := range top.Hosts {
		h, err := r.Provider.Hosts.Host(key)
		var users []guard.Use
		if err == nil {
			users, err = guard.Users(ctx, key, h, top)
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if i := slices.IndexFunc(users, func(u guard.Use) bool { return u.Image().Format == "raw" }); i >= 0 {
			return users[i], true, nil
		}
	}
	return found, false, failed
}

// format returns the source's format attribute and its path; empty if not set.
func (m model) format(ctx context.Context, diags *diag.Diagnostics) (path.Path, string) {
	name := claimSource
	if m.claim(ctx, diags) == nil {
		name, _ = m.direct(ctx, diags)
	}
	o, _ := m.child(name)
	f, _ := o.Attributes()["format"].(types.String)
	return sourcePath.AtName(name), f.ValueString()
}

// addBindError attaches the error to the source's attribute that err names, if any.
func addBindError(ctx context.Context, diags *diag.Diagnostics, m model, err error, detail string) {
	const summary = "The volume could not be bound"
	var blamed *source.Error
	if errors.As(err, &blamed) && blamed.Attribute != "" {
		at, _ := m.format(ctx, diags)
		diags.AddAttributeError(at.AtName(blamed.Attribute), summary, detail)
		return
	}
	diags.AddError(summary, detail)
}

// asRaw returns the volume with format raw, to read its header: opened in its own format, QEMU would open the files that the header names.
func asRaw(v volume.Volume) volume.Volume {
	v.Images = slices.Clone(v.Images)
	v.Images[0].Format = "raw"
	return v
}
