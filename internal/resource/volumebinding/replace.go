package volumebinding

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// warnOfLoss warns of a dynamic volume, which is deleted with its binding. Terraform does not show it for a replacement that only -replace
// asks for.
func (m model) warnOfLoss(ctx context.Context, how string, diags *diag.Diagnostics) {
	if m.dynamic(ctx, diags) == nil || m.Volume.IsNull() { // a null one was never made
		return
	}
	where := ""
	if v, known, _ := tfvalue.VolumeFrom(m.Volume); known {
		where = fmt.Sprintf(" (%.150s)", v.Images[0].Name)
	}
	// Of several warnings with one summary Terraform shows only the first.
	diags.AddWarning(fmt.Sprintf("The content of volume binding %s is lost", m.Name.ValueString()), fmt.Sprintf(
		"%s the binding deletes its dynamic volume%s with all data. To guard against that: lifecycle { prevent_destroy = true }.", how,
		where))
}

// checkReplacement refuses a replacement whose claim is missing, or can't be bound because of others, before the former binding is
// destroyed for it. Terraform does not tell what else the apply creates, so that a claim must be there before.
func (r *binding) checkReplacement(ctx context.Context, plan model, own privateState, diags *diag.Diagnostics) {
	c := plan.claim(ctx, diags)
	if c == nil || r.Provider.IsApplying() || !plan.isKnown(ctx, claimSource) || plan.AccessMode.IsUnknown() {
		return
	}
	client, err := r.Provider.Lists()
	if err != nil {
		return // already reported by planVolume
	}
	there, err := client.Claim(ctx, c.Namespace.ValueString(), c.ClaimName.ValueString())
	if err == nil && plan.Reserved.ValueBool() {
		_, wanted, _ := plan.reservationOf(ctx, own, diags)
		wanted.Owner = r.Provider.Owner
		err = wanted.CheckForeign(there, own.Owner)
	}
	if err == nil {
		return
	}
	detail := fmt.Sprintf("The replacement of binding %s can't have it: %s", plan.Name.ValueString(), err)
	if apierrors.IsNotFound(err) {
		detail = fmt.Sprintf("The former binding %s is not destroyed for the %s, which does not exist. Create the claim before, in an "+
			"apply of its own: terraform apply -target=<address of the claim>.", plan.Name.ValueString(), c.Ref())
	}
	diags.AddAttributeError(sourcePath.AtName(claimSource), "The claim of a replacement can't be bound", detail+
		"\n\nTo destroy the former binding all the same: terraform destroy -refresh=false.")
}
