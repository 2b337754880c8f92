package virtualmachine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
)

var _ resource.ResourceWithMoveState = &virtualMachine{}

// MoveState takes over domains of the provider dmacvicar/libvirt.
func (r *virtualMachine) MoveState(context.Context) []resource.StateMover {
	return providerdata.Mover(func(was providerdata.Former) (map[string]string, error) {
		id, _ := was.ID.(string) // the UUID before 0.9
		id = cmp.Or(was.UUID, id)
		if _, err := uuid.Parse(id); id != "" && err != nil {
			return nil, fmt.Errorf("%q is no UUID of a domain", id)
		}
		return map[string]string{"uuid": id, "name": was.Name}, nil
	}, "libvirt_domain")
}

// findMoved sets the host of a machine that was moved from another provider: that of the domain with its UUID, whatever its name.
func (r *virtualMachine) findMoved(ctx context.Context, state *model, diags *diag.Diagnostics) bool {
	id, name := state.UUID.ValueString(), state.Name.ValueString()
	key, err := r.Provider.FindMoved(ctx, fmt.Sprintf("the domain %q with UUID %s", name, id), "<host>/"+name,
		func(ctx context.Context, h *host.Host) error {
			_, err := h.StoredXML(ctx, id)
			return err
		})
	if err != nil {
		diags.AddError("The moved machine could not be found", err.Error())
		return false
	}
	state.Host = types.StringValue(key)
	h := r.Provider.RecordedHost(key, "machine", diags)
	if h == nil {
		return false
	}
	_, ok := r.adopt(ctx, h, key, id, diags)
	return ok
}
