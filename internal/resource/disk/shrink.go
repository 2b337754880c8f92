package disk

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

const cannotShrink = "A disk can't shrink"

func (m model) shrinks(state model, capacity int64) string {
	return fmt.Sprintf("Disk %s on host %s has %d bytes; %s is less, and what is beyond would be lost. Ask for at least %s, or replace "+
		"the disk.",
		state.Name.ValueString(), state.Host.ValueString(), capacity, m.Size.ValueString(), tfvalue.QuantityOfBytes(capacity).ValueString())
}

// refuseShrinking is the error at apply; the plan has only warned.
func (m model) refuseShrinking(ctx context.Context, state model, diags *diag.Diagnostics) {
	is, known := state.made(ctx, diags)
	if size := m.size(); known && size != 0 && size < *is.Capacity {
		diags.AddAttributeError(path.Root("size"), cannotShrink, m.shrinks(state, *is.Capacity))
	}
}
