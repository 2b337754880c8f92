package disk

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
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
