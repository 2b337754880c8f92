package virtualmachine

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// warnOfLoss warns of data that is deleted with a machine and is on none of its disks: keys that can't be recreated.
func (m model) warnOfLoss(how string, diags *diag.Diagnostics) {
	var lost []string
	if isSet(m.TPM) {
		lost = append(lost, "what its guest keeps in its TPM, such as the keys of encrypted disks")
	}
	if m.hasVariables() {
		lost = append(lost, "its UEFI variables, such as boot entries and the keys that were enrolled")
	}
	if len(lost) == 0 {
		return
	}
	// Of several warnings with one summary Terraform shows only the first.
	diags.AddWarning(fmt.Sprintf("State of machine %s is lost", m.ID.ValueString()),
		fmt.Sprintf("%s machine %s deletes %s.", how, m.ID.ValueString(), strings.Join(lost, ", and ")))
}
