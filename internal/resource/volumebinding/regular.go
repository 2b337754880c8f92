package volumebinding

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// checkRegular refuses a volume whose image is no regular file of the host, and warns where the host can't tell.
func checkRegular(ctx context.Context, h *host.Host, v volume.Volume, diags *diag.Diagnostics) error {
	err := content.CheckRegular(ctx, h, v.Images)
	if !errors.Is(err, host.ErrCannotTell) {
		return err
	}
	diags.AddWarning("Symbolic links are followed", fmt.Sprintf("%s\n\nNothing shows whether %s is a symbolic link on host %s. A pod "+
		"that mounts the claim, or another user with write access to its folder, can expose any file of that host to the machine "+
		"with one. Mount the volume on the host with the option nosymfollow (in mountOptions of the PersistentVolume where kubelet "+
		"mounts it), or make sure that only trusted users can write there. See the guide on security.", err, v.Images[0].Name, h.Key))
	return nil
}
