package disk

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// ownerKey is the key in private state of the owner that the disk was created under: machines that were not updated since have that owner
// as well, even if the provider's has changed.
const ownerKey = "owner"

func saveOwner(ctx context.Context, owner string, private interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
},
) diag.Diagnostics {
	text, _ := json.Marshal(owner) // marshalling a string can't fail
	return private.SetKey(ctx, ownerKey, text)
}

// loadOwner is the owner that a disk was created under, or the present one for an imported disk, whose owner is not recorded.
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
