package reservation

import (
	"context"

	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// SelectNode assigns an unbound claim to a Kubernetes node, as the scheduler does for a pod, so that it is provisioned. A claim that is
// assigned or bound already is left alone.
func SelectNode(ctx context.Context, claims Claims, ref Ref, claimUID, node string) error {
	return retry(ctx, outage, func(ctx context.Context) (bool, error) {
		claim, err := claims.Claim(ctx, ref.Namespace, ref.Name)
		if err != nil {
			return isTransient(err), err
		}
		if err := (Binding{ClaimUID: claimUID}).check(claim); err != nil {
			return false, err
		}
		p := newPatch(claim)
		if claim.Spec.VolumeName == "" && !storagehelpers.IsDelayBindingProvisioning(claim) {
			p.Metadata.Annotations[storagehelpers.AnnSelectedNode] = &node
		}
		err = p.write(ctx, claims, "let a pod use the claim once")
		return isTransient(err), err
	})
}
