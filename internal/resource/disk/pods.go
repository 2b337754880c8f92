package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// checkPods refuses to clone a claim that pods may write to. The binding records the claim in the image; older states don't have it.
func (r *disk) checkPods(ctx context.Context, images []volume.Image, diags *diag.Diagnostics) error {
	for _, i := range images {
		from := volume.ParseBinding(i.Binding)
		if from.Claim == "" {
			continue
		}
		client, err := r.Provider.Cluster()
		var pods []cluster.PodUse
		if err == nil {
			pods, err = client.PodsUsing(ctx, from.Namespace, from.Claim)
		}
		switch {
		case apierrors.IsForbidden(err), errors.Is(err, providerdata.ErrNoCluster):
			diags.AddAttributeWarning(sourcePath, "Pods could not be asked", fmt.Sprintf("Whether pods write to the "+
				"PersistentVolumeClaim %s/%s while it is cloned is not known: %s. See to it yourself that none does.", from.Namespace,
				from.Claim, err))
			continue
		case err != nil:
			return err
		}
		pods = slices.DeleteFunc(slices.Clone(pods), func(p cluster.PodUse) bool { return p.ReadOnly })
		if len(pods) > 0 {
			return fmt.Errorf("%w: pods that may write to it mount the PersistentVolumeClaim %s/%s, which is the master %s: %s. What "+
				"came of the copy would be torn. Wait until they are finished, or stop them while the clone is made", guard.ErrInUse,
				from.Namespace,
				from.Claim, i.Name, cluster.PodNames(pods))
		}
	}
	return nil
}
