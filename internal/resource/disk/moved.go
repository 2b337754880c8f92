package disk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

const movedSeed = "libvirt_cloudinit_disk"

var _ resource.ResourceWithMoveState = &disk{}

// MoveState takes over volumes of the provider dmacvicar/libvirt. Until they are found, the id is libvirt's key of the volume.
func (r *disk) MoveState(context.Context) []resource.StateMover {
	return providerdata.Mover(func(was providerdata.Former) (map[string]string, error) {
		key, _ := was.ID.(string)
		if at := strings.LastIndex(key, ";"); was.TypeName == movedSeed && at >= 0 {
			key = key[:at] // a random UUID follows
		} else if was.TypeName == movedSeed {
			return nil, errors.New("since dmacvicar/libvirt 0.9 it is a file of the computer that ran Terraform. The volume is the " +
				"libvirt_volume with its content: move that one")
		}
		return map[string]string{"id": key, "pool": was.Pool, "name": was.Name}, nil
	}, "libvirt_volume", movedSeed)
}

// findMoved sets the host of a disk that was moved from another provider, and checks it as an import does. A volume of its name with
// another key is another one.
func (r *disk) findMoved(ctx context.Context, state *model, private tfvalue.PrivateState, diags *diag.Diagnostics) bool {
	pool, name, id := state.Pool.ValueString(), state.Name.ValueString(), state.ID.ValueString()
	on := func(ctx context.Context, h *host.Host) error {
		v, err := h.Volume(ctx, pool, name)
		if err == nil && v.Key != id && v.Path != id {
			err = host.ErrNotFound
		}
		return err
	}
	what := fmt.Sprintf("volume %q in storage pool %q with key %q", name, pool, id)
	key, err := r.Provider.FindMoved(ctx, what, "<host>/"+pool+"/"+name, on)
	if err != nil {
		diags.AddError("The moved disk could not be found", err.Error())
		return false
	}
	state.Host = types.StringValue(key)
	h := r.host(*state, diags)
	if h == nil {
		return false
	}
	v, err := h.Volume(ctx, pool, name)
	if err == nil {
		err = content.CheckImport(ctx, h, pool, name)
	}
	if err != nil {
		addError(diags, *state, "The disk could not be moved", err)
	}
	tfvalue.SavePrivate(ctx, private, importedKey, imported{Modified: v.Modified, Found: true}, diags)
	return err == nil
}
