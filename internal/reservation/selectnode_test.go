package reservation

import (
	"errors"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const selected = "volume.kubernetes.io/selected-node"

func TestSelectNode_Once(t *testing.T) {
	choose := func(node string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Annotations[selected] = node }
	}
	for name, c := range map[string]struct {
		before, between func(*corev1.PersistentVolumeClaim)
		fails           error
		want            string
		patches         int
	}{
		"a claim without node":                {want: "node-a", patches: 1},
		"the scheduler was before":            {before: choose("node-b"), want: "node-b"},
		"the scheduler comes between":         {between: choose("node-b"), want: "node-b"},
		"another change comes between":        {between: func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} }, want: "node-a", patches: 1},
		"the claim is bound":                  {before: func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }},
		"the API server's first answer fails": {fails: apierrors.NewServiceUnavailable("starting"), want: "node-a", patches: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				claims := newClaims()
				if c.before != nil {
					claims.change(c.before)
				}
				claims.write = func(n int) error {
					if n == 1 && c.between != nil {
						claims.change(c.between)
					}
					if n == 1 {
						return c.fails
					}
					return nil
				}
				err := SelectNode(t.Context(), claims, golden, "uid-1", "node-a")
				if err != nil || claims.claim.Annotations[selected] != c.want || len(claims.patches) != c.patches {
					t.Errorf("got %v, %v after %q", err, claims.claim.Annotations, claims.patches)
				}
			})
		})
	}
}

func TestSelectNode_Refused(t *testing.T) {
	var other *OtherClaimError
	if err := SelectNode(t.Context(), newClaims(), golden, "uid-0", "node-a"); !errors.As(err, &other) {
		t.Errorf("another claim: %v", err)
	}
	claims := newClaims()
	claims.write = func(int) error { return final["forbidden"] }
	err := SelectNode(t.Context(), claims, golden, "uid-1", "node-a")
	if !apierrors.IsForbidden(err) || claims.writes != 1 {
		t.Errorf("forbidden: %v after %d writes", err, claims.writes)
	}
}
