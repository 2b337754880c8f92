package volumebinding

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// podReader reads the pods that mount a claim.
type podReader interface {
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	PodsUsing(ctx context.Context, namespace, claim string) ([]cluster.PodUse, error)
}

// mounts are the unfinished pods that mount a claim, which is held under a mode.
type mounts struct {
	ref  claim.Ref
	mode volume.AccessMode
	// against are the pods that conflict with the mode, beside are the compatible ones.
	against, beside []cluster.PodUse
}

// mountsOf lists the pods that mount a claim and use it. Kubernetes prevents pods on several nodes from sharing a ReadWriteOnce claim, but
// does not know of machines.
func mountsOf(ctx context.Context, r podReader, ref claim.Ref, mode volume.AccessMode) (m mounts, err error) {
	m = mounts{ref: ref, mode: mode}
	pods, err := r.PodsUsing(ctx, ref.Namespace, ref.Name)
	if err != nil || len(pods) == 0 {
		return m, err
	}
	isBorne := func(cluster.PodUse) bool { return mode != volume.WriteExclusive }
	if mode == volume.ReadShared {
		c, err := r.Claim(ctx, ref.Namespace, ref.Name)
		if err != nil {
			return m, err
		}
		shares := slices.ContainsFunc(c.Status.AccessModes, func(a corev1.PersistentVolumeAccessMode) bool {
			return a == corev1.ReadOnlyMany || a == corev1.ReadWriteMany
		})
		isBorne = func(p cluster.PodUse) bool { return shares || p.ReadOnly }
	}
	for _, p := range cluster.Users(pods) {
		if isBorne(p) && !p.Fills {
			m.beside = append(m.beside, p)
		} else {
			m.against = append(m.against, p)
		}
	}
	return m, nil
}

// checkPods refuses a claim whose pods and machines would overwrite each other's data. It runs after the reservation, so that a user who
// checks for a reservation before starting a pod finds it.
func (r *binding) checkPods(ctx context.Context, m model, diags *diag.Diagnostics) error {
	c := m.claim(ctx, diags)
	if c == nil {
		return nil
	}
	client, err := r.Provider.Cluster()
	if err != nil {
		return err
	}
	found, err := mountsOf(ctx, client, c.Ref(), volume.AccessMode(m.AccessMode.ValueString()))
	switch {
	case apierrors.IsForbidden(err):
		warnOfUnknownPods(diags, c.Ref(), err)
		return nil
	case err != nil:
		return err
	case len(found.against) > 0:
		return found.refusal()
	}
	found.warn(diags)
	return nil
}

// refreshPods warns of pods that have mounted the claim since: nothing prevents them.
func (r *binding) refreshPods(ctx context.Context, state model, diags *diag.Diagnostics) {
	c := state.claim(ctx, diags)
	if c == nil {
		return
	}
	lists, err := r.Provider.Lists()
	if err != nil {
		return // already reported by refreshVolume
	}
	found, err := mountsOf(ctx, lists, c.Ref(), volume.AccessMode(state.AccessMode.ValueString()))
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		warnOfUnknownPods(diags, c.Ref(), err)
	case len(found.against) > 0:
		diags.AddAttributeWarning(sourcePath.AtName(claimSource), "Pods use what machines use",
			fmt.Sprintf("%s: %s.", state.Name.ValueString(), found.refusal()))
	}
	found.warn(diags)
}

func (m mounts) refusal() error {
	mount := "mount it"
	if m.mode != volume.WriteExclusive {
		mount = "mount it for writing"
	}
	return fmt.Errorf("the %s can't be used %s while pods %s: %s. What they and a machine do destroys the data. Wait until they are "+
		"finished, or stop them and what starts them again", m.ref, m.mode, mount, cluster.PodNames(m.against))
}

func (m mounts) warn(diags *diag.Diagnostics) {
	if len(m.beside) == 0 {
		return
	}
	diags.AddAttributeWarning(sourcePath.AtName(claimSource), "Pods mount the claim, too",
		fmt.Sprintf("The %s is used %s, and mounted by: %s. Pods can't be prevented from that, nor from writing: see to it yourself that "+
			"they agree with the machines.", m.ref, m.mode, cluster.PodNames(m.beside)))
}

func warnOfUnknownPods(diags *diag.Diagnostics, ref claim.Ref, err error) {
	text := fmt.Sprintf("Whether pods mount the %s is not known: %s.", ref, err)
	if apierrors.IsForbidden(err) {
		text += " Allow these credentials to list pods, or see to it yourself that no pod writes to what machines use."
	}
	diags.AddAttributeWarning(sourcePath.AtName(claimSource), "Pods could not be asked", text)
}
