package disk

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ownerKey is where the private state has the owner that the disk was made under: machines that are as old as the disk
// have that one, too, whatever the provider's is by now.
const ownerKey = "owner"

func saveOwner(ctx context.Context, owner string, private interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
},
) diag.Diagnostics {
	text, _ := json.Marshal(owner) // a string always can be
	return private.SetKey(ctx, ownerKey, text)
}

// loadOwner is the owner that a disk was made under; of an imported one, whose nobody knows, the present one.
func loadOwner(ctx context.Context, present string, private interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
},
) (owner string, diags diag.Diagnostics) {
	text, diags := private.GetKey(ctx, ownerKey)
	if diags.HasError() || text == nil {
		return present, diags
	}
	if err := json.Unmarshal(text, &owner); err != nil {
		diags.AddError("Unreadable private state", "The owner that the disk was made under: "+err.Error())
	}
	return owner, diags
}

// letGo has machines let go of the disk: those of its former owner, if that was another one, and those of the present one.
func (r *disk) letGo(ctx context.Context, hosts map[string]guard.Host, top volume.Image, former string) error {
	present := r.backend.Owner
	if former != present {
		err := guard.LetGo(ctx, hosts, top, former, func(u guard.Use) bool {
			return u.Mark.Phase != "" && u.Mark.Owner == present
		})
		if err != nil {
			return err
		}
	}
	return guard.LetGo(ctx, hosts, top, present, nil)
}
