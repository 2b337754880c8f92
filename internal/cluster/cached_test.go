package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// counted is a client of a fake API server that counts requests.
type counted struct {
	*Client
	objects *fake.Clientset
	meta    *metadatafake.FakeMetadataClient

	mu sync.Mutex
	// requests has the number of requests by verb and resource, such as "get secrets".
	requests map[string]int
	// fail has the errors to answer with, by verb and resource.
	fail map[string]error
}

// serveMany serves n claims with their volumes and secrets, named c-0 and so on.
func serveMany(t *testing.T, n int, others ...runtime.Object) *counted {
	t.Helper()
	secrets := make([]runtime.Object, 0, n)
	for i := range n {
		name := metav1.ObjectMeta{Namespace: "vms", Name: fmt.Sprint("c-", i), ResourceVersion: fmt.Sprint(i)}
		others = append(others, &corev1.PersistentVolumeClaim{ObjectMeta: name})
		secrets = append(secrets, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: name})
		name.Namespace = ""
		others = append(others, &corev1.PersistentVolume{ObjectMeta: name})
	}
	known := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(known); err != nil {
		t.Fatal(err)
	}
	c := &counted{
		objects: fake.NewClientset(others...), meta: metadatafake.NewSimpleMetadataClient(known, secrets...),
		requests: map[string]int{}, fail: map[string]error{},
	}
	c.objects.PrependReactor("*", "*", c.count)
	c.meta.PrependReactor("*", "*", c.count)
	c.Client = NewForClients("https://api", c.objects, c.meta)
	return c
}

func (c *counted) count(action clienttesting.Action) (bool, runtime.Object, error) {
	request := action.GetVerb() + " " + action.GetResource().Resource
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[request]++
	err := c.fail[request]
	return err != nil, nil, err
}

func (c *counted) check(t *testing.T, request string, want int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := c.requests[request]; got != want {
		t.Errorf("%s: %d requests, not %d", request, got, want)
	}
}

// readAll reads n claims with their volumes, secrets and pods, ten at a time like Terraform.
func readAll(t *testing.T, r *Cached, n int) {
	t.Helper()
	var group sync.WaitGroup
	var next atomic.Int32
	for range 10 {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := readOne(t.Context(), r, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

func readOne(ctx context.Context, r *Cached, i int) error {
	name := fmt.Sprint("c-", i)
	claim, err := r.Claim(ctx, "vms", name)
	if err != nil {
		return err
	}
	pv, err := r.Volume(ctx, name)
	if err != nil {
		return err
	}
	version, err := r.SecretVersion(ctx, "vms", name)
	if err != nil {
		return err
	}
	if claim.Name != name || pv.Name != name || version != fmt.Sprint(i) {
		return fmt.Errorf("%s is %s, %s and %s", name, claim.Name, pv.Name, version)
	}
	_, err = r.PodsUsing(ctx, "vms", name)
	return err
}

func TestCached_ThousandBindingsCountRequests(t *testing.T) {
	c := serveMany(t, 1000)
	r := c.Cached()
	for range 2 {
		readAll(t, r, 1000)
	}
	for _, resource := range []string{"persistentvolumeclaims", "persistentvolumes", "secrets"} {
		c.check(t, "get "+resource, firstGets)
		c.check(t, "list "+resource, 1)
	}
	c.check(t, "list pods", 1)
}

func TestCached_FewBindingsListNothing(t *testing.T) {
	c := serveMany(t, 100)
	r := c.Cached()
	for range 3 {
		readAll(t, r, firstGets)
	}
	for _, resource := range []string{"persistentvolumeclaims", "persistentvolumes", "secrets"} {
		c.check(t, "get "+resource, firstGets)
		c.check(t, "list "+resource, 0)
	}
}

func TestCached_GetsEachWithoutListRight(t *testing.T) {
	c := serveMany(t, 100)
	for _, resource := range []string{"persistentvolumeclaims", "persistentvolumes", "secrets", "pods"} {
		c.fail["list "+resource] = apierrors.NewForbidden(corev1.Resource(resource), "", errors.New("RBAC"))
	}
	r := c.Cached()
	for i := range 200 {
		err := readOne(t.Context(), r, i%100)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "listing Pods in the namespace vms at the API server https://api") {
			t.Fatalf("got %v", err)
		}
	}
	for _, resource := range []string{"persistentvolumeclaims", "persistentvolumes", "secrets"} {
		c.check(t, "get "+resource, 100)
		c.check(t, "list "+resource, 1)
	}
	c.check(t, "list pods", 1)
}

func TestCached_AbsentFromListIsNotFound(t *testing.T) {
	c := serveMany(t, 10)
	r := c.Cached()
	for range 20 {
		for what, read := range map[string]func() error{
			"PersistentVolumeClaim vms/x": func() error { _, err := r.Claim(t.Context(), "vms", "x"); return err },
			"PersistentVolume x":          func() error { _, err := r.Volume(t.Context(), "x"); return err },
			"Secret vms/x":                func() error { _, err := r.SecretVersion(t.Context(), "vms", "x"); return err },
		} {
			if err := read(); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "reading "+what+" from the API server https://api") {
				t.Errorf("got %v", err)
			}
		}
	}
	if uses, err := r.PodsUsing(t.Context(), "vms", "x"); err != nil || len(uses) > 0 {
		t.Errorf("got %v, %v", uses, err)
	}
	c.check(t, "get secrets", firstGets)
	c.check(t, "list secrets", 1)
}

func TestCached_ErrorsAreNotCached(t *testing.T) {
	c := serveMany(t, 10)
	r := c.Cached()
	broken := apierrors.NewInternalError(errors.New("etcd is down"))
	c.fail["get persistentvolumeclaims"], c.fail["list persistentvolumeclaims"] = broken, broken
	for range 2 * firstGets {
		if _, err := r.Claim(t.Context(), "vms", "c-1"); !apierrors.IsInternalError(err) {
			t.Errorf("got %v", err)
		}
	}
	c.check(t, "list persistentvolumeclaims", firstGets)
	clear(c.fail)
	if _, err := r.Claim(t.Context(), "vms", "c-1"); err != nil {
		t.Error(err)
	}
}

func TestCached_EntriesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveMany(t, 10, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ceph", Name: "config"}})
		r := c.Cached()
		for round := range 3 {
			for i := range 10 {
				if err := readOne(t.Context(), r, i); err != nil {
					t.Fatal(err)
				}
				if _, err := r.ConfigMap(t.Context(), "ceph", "config"); err != nil {
					t.Fatal(err)
				}
			}
			c.check(t, "list persistentvolumes", round+1)
			c.check(t, "list pods", round+1)
			c.check(t, "get configmaps", round+1)
			time.Sleep(keepTime)
		}
		c.check(t, "get persistentvolumes", firstGets)
	})
}

func TestCached_CanceledCallerLeavesRequestToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveMany(t, 10)
		c.objects.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			time.Sleep(10 * time.Second)
			return false, nil, nil
		})
		r := c.Cached()
		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			_, err := r.PodsUsing(hasty, "vms", "c-1")
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "PersistentVolumeClaim vms/c-1") {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		group.Go(func() {
			if _, err := r.PodsUsing(t.Context(), "vms", "c-1"); err != nil {
				t.Error(err)
			}
		})
		group.Wait()
		c.check(t, "list pods", 1)
	})
}
