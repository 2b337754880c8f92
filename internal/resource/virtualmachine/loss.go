package virtualmachine

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// warnOfLoss says what goes with a machine that is in no disk of its: keys that nobody can make again.
func (m model) warnOfLoss(how string, diags *diag.Diagnostics) {
	var lost []string
	if isSet(m.TPM) {
		lost = append(lost, "what its guest keeps in its TPM, such as the keys of encrypted disks")
	}
	if isSet(m.Firmware) && m.Firmware.Attributes()["type"].Equal(types.StringValue(domainxml.UEFI)) {
		lost = append(lost, "its UEFI variables, such as boot entries and the keys that were enrolled")
	}
	if len(lost) == 0 {
		return
	}
	// Of warnings with one summary Terraform shows the first only.
	diags.AddWarning(fmt.Sprintf("State of machine %s is lost", m.ID.ValueString()),
		fmt.Sprintf("%s machine %s deletes %s.", how, m.ID.ValueString(), strings.Join(lost, ", and ")))
}
