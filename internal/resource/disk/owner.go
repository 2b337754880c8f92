package disk

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// ownerKey is the key in private state of the owner that the disk was created under: machines that were not updated since have that owner
// as well, even if the provider's has changed.
const ownerKey = "owner"

// loadOwner is the owner that a disk was created under, or the present one for an imported disk, whose owner is not recorded.
func loadOwner(ctx context.Context, present string, private tfvalue.PrivateReader, diags *diag.Diagnostics) string {
	owner, ok, err := tfvalue.LoadPrivate[string](ctx, private, ownerKey, diags)
	if err != nil {
		diags.AddError("Unreadable private state", "The owner that the disk was made under: "+err.Error())
	}
	if !ok {
		return present
	}
	return owner
}
