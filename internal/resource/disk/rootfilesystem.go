package disk

import (
	"context"
	"fmt"
	"io"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/resource/imagesource"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// prepareRoot sets the layers of a disk, and returns the image's digest. Without the registry, an earlier disk of the pool says what the
// image is.
func (r *disk) prepareRoot(
	ctx context.Context, h *host.Host, from imagesource.Reference, spec *content.Spec,
) (image.RootFS, string, error) {
	if from.IsPulled() {
		return from.PrepareRootFS(ctx, &r.Provider.Tags, h.Architecture, spec)
	}
	digest := from.PlanDigest().ValueString()
	is, err := content.NotedImage(ctx, h, spec.Pool, from.Image.ValueString(), digest)
	spec.Layers, spec.Root = is.Layers, is
	return is, digest, err
}

// warnOfArchitecture warns of a container image for another architecture than the host's. It is no error, because a guest may have that,
// emulated.
func (m model) warnOfArchitecture(is image.RootFS, diags *diag.Diagnostics) {
	if is.Wanted == "" {
		return
	}
	// Of several warnings with one summary Terraform shows only the first.
	diags.AddAttributeWarning(childPath(fromRoot).AtName("image"), "The image of disk "+m.label()+" is for another architecture",
		fmt.Sprintf("The container image is for %.100s, and the host %s is %s. Only a machine whose machine.arch is that of the image can "+
			"start its programs, and that is slow, because it is emulated. Otherwise name an image for %[3]s, or one for several "+
			"architectures.",
			is.Architecture, m.Host.ValueString(), is.Wanted))
}

// logLayers logs each layer that is fetched: the progress is that of one image, and a root file system has many. Those that are on the host
// are not opened. What they have and no disk is logged once.
func (m model) logLayers(ctx context.Context, spec *content.Spec) {
	layers := spec.Layers
	spec.Skipped = func(entries int) {
		tflog.Warn(ctx, "The layers have files of AUFS or attributes of macOS, which are left out", map[string]any{
			"disk": m.label(), "image": layers[0].Image, "entries": entries,
		})
	}
	for n, layer := range layers {
		layers[n].Open = func(ctx context.Context) (io.ReadCloser, error) {
			tflog.Info(ctx, "Filling the image of a layer", map[string]any{
				"host": m.Host.ValueString(), "disk": m.label(), "layer": n + 1, "of_layers": len(layers),
			})
			return layer.Open(ctx)
		}
	}
}

// planConfiguration is the planned configuration of an existing disk's image. That of an imported disk is read when its first configuration
// is applied: nothing on the host has it.
func (m model) planConfiguration(state model) types.Object {
	if state.isImported() && state.ImageConfiguration.IsNull() && (m.isUndecided() || m.kind() == fromRoot) {
		return types.ObjectUnknown(tfvalue.ImageConfigurationTypes)
	}
	return state.ImageConfiguration
}

// adoptConfiguration reads a configuration that was unknown in the plan from the registry. The disk needs none, so that a registry which
// does not answer is no reason to leave it unmanaged.
func (r *disk) adoptConfiguration(ctx context.Context, h *host.Host, plan *model, s sourceModel, diags *diag.Diagnostics) {
	if !plan.ImageConfiguration.IsUnknown() {
		return
	}
	plan.ImageConfiguration = types.ObjectNull(tfvalue.ImageConfigurationTypes)
	if s.Root == nil {
		return // of a source that was unknown in the plan
	}
	is, _, err := r.prepareRoot(ctx, h, *s.Root, &content.Spec{Pool: plan.Pool.ValueString()})
	if err != nil {
		diags.AddAttributeWarning(path.Root("image_configuration"), "The configuration of the image of disk "+plan.label()+" is not known",
			fmt.Sprintf("The imported disk %s was adopted, and its image_configuration is null, because the container image could not be "+
				"asked for it: %s. To try again, remove the disk from the state (terraform state rm <address of this resource>), import "+
				"it, and apply.", plan.ID.ValueString(), err))
		return
	}
	plan.ImageConfiguration = configurationOf(is)
}
