//go:build acc

package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// many claims are more than a page, and volumes more than are read individually. A thousand of both would keep the controllers busy for
// half a minute; TestCached_ThousandBindingsCountRequests has them.
const many, volumes = 501, 20

// keepTime is how long a list is kept: a refresh on a busy machine that takes longer lists once more in each such period.
const keepTime = 30 * time.Second

// manySpec is a claim that is never bound to its volume, because their classes differ.
func manySpec(i int) lab.ClaimSpec {
	return lab.ClaimSpec{Namespace: "many", Name: fmt.Sprint("c-", i), LUN: lab.LUN{IQN: "iqn.2001-04.com.example:many", Size: 1 << 20}}
}

// parallel calls do n times, with bounded concurrency.
func parallel(ctx context.Context, t *testing.T, n int, do func(ctx context.Context, i int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(10)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// addMany creates many claims, and volumes that belong to none of them.
func addMany(t *testing.T, l *lab.Lab) {
	t.Helper()
	namespace(t, l, "many")
	claims, pvs := l.Cluster.Client.CoreV1().PersistentVolumeClaims("many"), l.Cluster.Client.CoreV1().PersistentVolumes()
	t.Cleanup(func() { removeMany(t, claims, pvs) })
	parallel(t.Context(), t, many, func(ctx context.Context, i int) error {
		claim, class := l.Claim(manySpec(i)), "claims"
		claim.Spec.VolumeName, claim.Spec.StorageClassName = "", &class
		_, err := claims.Create(ctx, claim, metav1.CreateOptions{})
		return err
	})
	parallel(t.Context(), t, volumes, func(ctx context.Context, i int) error {
		pv := l.Volume(manySpec(i))
		pv.Spec.ClaimRef, pv.Spec.StorageClassName = nil, "volumes"
		_, err := pvs.Create(ctx, pv, metav1.CreateOptions{})
		return err
	})
}

func removeMany(t *testing.T, claims typedcorev1.PersistentVolumeClaimInterface, pvs typedcorev1.PersistentVolumeInterface) {
	t.Helper()
	parallel(context.Background(), t, many, func(ctx context.Context, i int) error {
		return claims.Delete(ctx, manySpec(i).Name, metav1.DeleteOptions{})
	})
	parallel(context.Background(), t, volumes, func(ctx context.Context, i int) error {
		return pvs.Delete(ctx, manySpec(i).VolumeName(), metav1.DeleteOptions{})
	})
	one := metav1.ListOptions{Limit: 1}
	limit := lab.Patience(2 * time.Minute)
	err := wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		claim, err := claims.List(ctx, one)
		if err != nil || len(claim.Items) > 0 {
			return false, err
		}
		pv, err := pvs.List(ctx, one)
		return err == nil && len(pv.Items) == 0, err
	})
	if err != nil {
		t.Errorf("what the test made is not gone: %v", err)
	}
}

func TestAccCached_RefreshOfManyCountsRequests(t *testing.T) {
	l := acctest.Lab(t)
	addMany(t, l)
	client, asked := counting(t, l)
	r := client.Cached()
	start := time.Now()
	parallel(t.Context(), t, many, func(ctx context.Context, i int) error {
		claim, err := r.Claim(ctx, "many", manySpec(i).Name)
		if err != nil {
			return err
		}
		volume := manySpec(i % volumes).VolumeName()
		pv, err := r.Volume(ctx, volume)
		if err != nil {
			return err
		}
		if claim.Name != manySpec(i).Name || pv.Name != volume {
			return fmt.Errorf("%d is %s and %s", i, claim.Name, pv.Name)
		}
		_, err = r.PodsUsing(ctx, "many", claim.Name)
		return err
	})
	periods := 1 + int(time.Since(start)/keepTime)
	t.Logf("lists: %v, gets: %v, in %d periods", asked.lists, asked.gets, periods)
	for resource, pages := range map[string]int{"persistentvolumeclaims": 2, "persistentvolumes": 1, "pods": 1} {
		if lists := asked.lists[resource]; lists < pages || lists > pages*periods {
			t.Errorf("%d lists of %s, not the %d pages of one", lists, resource, pages)
		}
		if gets := asked.gets[resource]; gets > 5*periods {
			t.Errorf("%d of the %s were read one by one", gets, resource)
		}
	}
}

func TestAccPodsUsing(t *testing.T) {
	l := acctest.Lab(t)
	namespace(t, l, "pods")
	pods := l.Cluster.Client.CoreV1().Pods("pods")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.PodSpec{
			NodeName: "node-a",
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "golden"},
			}}},
			Containers: []corev1.Container{{
				Name: "main", Image: "busybox", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data", ReadOnly: true}},
			}},
		},
	}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, "pod", pods.Delete, "web")
	client, _ := counting(t, l)
	uses, err := client.PodsUsing(t.Context(), "pods", "golden")
	if err != nil || len(uses) != 1 || uses[0].Name != "web" || !uses[0].ReadOnly || uses[0].Node != "node-a" {
		t.Errorf("got %v, %v", uses, err)
	}
	if uses, err := client.PodsUsing(t.Context(), "pods", "silver"); err != nil || len(uses) > 0 {
		t.Errorf("got %v, %v", uses, err)
	}
}
