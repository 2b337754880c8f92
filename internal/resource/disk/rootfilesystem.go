package disk

import (
	"context"
	"fmt"
	"io"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

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

// logLayers logs each layer that is fetched: the progress is that of one image, and a root file system has many. Those that are on the host are not opened.
func (m model) logLayers(layers []image.RootLayer) {
	for n, layer := range layers {
		layers[n].Open = func(ctx context.Context) (io.ReadCloser, error) {
			tflog.Info(ctx, "Filling the image of a layer", map[string]any{
				"host": m.Host.ValueString(), "disk": m.label(), "layer": n + 1, "of_layers": len(layers),
			})
			return layer.Open(ctx)
		}
	}
}
