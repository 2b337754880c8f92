package disk

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// warnOfArchitecture warns of a container image for another architecture than the host's. It is no error, because a guest may have that, emulated.
func (m model) warnOfArchitecture(is image.RootFS, diags *diag.Diagnostics) {
	if is.Wanted == "" {
		return
	}
	// Of several warnings with one summary Terraform shows only the first.
	diags.AddAttributeWarning(childPath(fromRoot).AtName("image"), "The image of disk "+m.label()+" is for another architecture", fmt.Sprintf(
		"The container image is for %.100s, and the host %s is %s. Only a machine whose machine.arch is that of the image can start its programs, and that is slow, "+
			"because it is emulated. Otherwise name an image for %[3]s, or one for several architectures.", is.Architecture, m.Host.ValueString(), is.Wanted))
}
