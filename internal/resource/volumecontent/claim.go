package volumecontent

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// claimed is the claim of a volume, on which its content is recorded.
type claimed struct {
	ref volume.BindingRef
	// cluster is nil for a volume without a claim, and where none is reserved.
	cluster *cluster.Client
}

func (r *volumeContent) claimOf(v volume.Volume) (claimed, error) {
	c := claimed{ref: volume.ParseBinding(v.Images[0].Binding)}
	if c.ref.Claim == "" || !r.Provider.ReservesClaims {
		return c, nil
	}
	var err error
	c.cluster, err = r.Provider.Cluster()
	return c, err
}

func (c claimed) name() reservation.Ref {
	return reservation.Ref{Namespace: c.ref.Namespace, Name: c.ref.Claim}
}

// read returns the record of the claim; the zero value if there is none, or it is that of another binding.
func (c claimed) read(ctx context.Context) (is reservation.Content, err error) {
	if c.cluster == nil {
		return is, nil
	}
	claim, err := c.cluster.Claim(ctx, c.ref.Namespace, c.ref.Claim)
	if apierrors.IsNotFound(err) {
		return is, nil
	}
	if err != nil {
		return is, err
	}
	if is, err = reservation.ContentOf(claim); is.Binding != c.ref.ID {
		return reservation.Content{}, err
	}
	return is, err
}

func (c claimed) record(ctx context.Context, is reservation.Content) error {
	if c.cluster == nil {
		return nil
	}
	return reservation.RecordContent(ctx, c.cluster, c.name(), c.ref, is)
}

func (c claimed) forget(ctx context.Context) error {
	if c.cluster == nil {
		return nil
	}
	return reservation.ForgetContent(ctx, c.cluster, c.name(), c.ref)
}

// checkPods refuses a claim that pods mount.
func (r *volumeContent) checkPods(ctx context.Context, v volume.Volume, diags *diag.Diagnostics) error {
	ref := volume.ParseBinding(v.Images[0].Binding)
	if ref.Claim == "" {
		return nil
	}
	client, err := r.Provider.Cluster()
	var pods []cluster.PodUse
	if err == nil {
		pods, err = client.PodsUsing(ctx, ref.Namespace, ref.Claim)
	}
	switch {
	case apierrors.IsForbidden(err), errors.Is(err, providerdata.ErrNoCluster):
		diags.AddAttributeWarning(targetPath, "Pods could not be asked", fmt.Sprintf("Whether pods use the PersistentVolumeClaim %s/%s "+
			"while it is filled is not known: %s. Make sure that none does.", ref.Namespace, ref.Claim, err))
		return nil
	case err != nil || len(cluster.Users(pods)) == 0:
		return err
	}
	return fmt.Errorf("%w: pods mount the PersistentVolumeClaim %s/%s: %s. Wait until they are finished, or stop them", guard.ErrInUse,
		ref.Namespace,
		ref.Claim, cluster.PodNames(cluster.Users(pods)))
}
