//go:build acc

package pods_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/pods"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

// An image is uploaded once; what is there is named when another one is refused, and overwritten or erased when that is wanted.
func TestAccFiller_Upload(t *testing.T) {
	l := acctest.Lab(t)
	for name, block := range kinds {
		t.Run(name, func(t *testing.T) {
			c := newClaim(t, l, "upload-"+name, block)
			raw, content := disk(t, "the first one", 8)
			image := qcow2(t, raw)
			sum := fmt.Sprintf("sha256:%x", sha256.Sum256(acctest.Must(os.ReadFile(image))(t)))
			is, err := c.upload(t, image)
			if want := (podwire.Filled{Format: "qcow2", Capacity: 8 << 20, Digest: sum}); err != nil || is != want {
				t.Fatalf("%v, %+v", err, is)
			}
			c.holds(t, content)

			raw, second := disk(t, "the second one", 6)
			_, err = c.upload(t, raw)
			if !errors.Is(err, pods.ErrHasContent) {
				t.Errorf("it does not say that nothing was written: %v", err)
			}
			wrong(t, err, "the volume has content already", "a GPT partition table", "its last lines")
			c.holds(t, content)
			c.leavesNothing(t)

			c.Overwrite = true
			if is, err := c.upload(t, raw); err != nil || is.Format != "raw" || is.Capacity != 6<<20 {
				t.Fatalf("%v, %+v", err, is)
			}
			c.holds(t, second)

			if err := c.Erase(t.Context()); err != nil {
				t.Fatal(err)
			}
			size := claimSize // the device is larger than the images
			if !block {
				size = 8 << 20 // it had the length of the first one
			}
			c.holds(t, make([]byte, size))
		})
	}
}

// The disk of a container image is copied, and not over what is there.
func TestAccFiller_Copy(t *testing.T) {
	l := acctest.Lab(t)
	for name, block := range kinds {
		t.Run(name, func(t *testing.T) {
			c := newClaim(t, l, "copy-"+name, block)
			raw, content := disk(t, "copied", 8)
			reference := c.pushed(t, qcow2(t, raw))
			is, err := c.Copy(t.Context(), reference, "disk/disk.img")
			if _, digest, _ := strings.Cut(reference, "@"); err != nil || is != (podwire.Filled{Format: "qcow2", Capacity: 8 << 20, Digest: digest}) {
				t.Fatalf("%v, %+v", err, is)
			}
			c.holds(t, content)
			raw, _ = disk(t, "another one", 4)
			_, err = c.Copy(t.Context(), c.pushed(t, raw), "")
			wrong(t, err, "has not succeeded", "exit status 3", "a GPT partition table")
			c.holds(t, content)
		})
	}
}

// Half an image is never taken for a whole one: when its source or the pod ends in the middle, the claim is marked, and the next try fills it.
func TestAccFiller_Interrupted(t *testing.T) {
	l := acctest.Lab(t)
	c := newClaim(t, l, "interrupted", true)
	raw, content := disk(t, "whole", 8)
	node := acctest.Must(l.Node(t.Context()))(t)
	const marker = "virtclaim: this volume is being filled"
	isMarked := func() error {
		if got := acctest.StoredAt(t, c.stored, 0, len(marker)); got != marker {
			return fmt.Errorf("it begins with %q", got)
		}
		return nil
	}
	for name, end := range map[string]func(w *io.PipeWriter) error{
		"the download was cut":      func(w *io.PipeWriter) error { return w.CloseWithError(errors.New("the download was cut")) },
		"has not filled the claim:": func(*io.PipeWriter) error { return node.RemovePod(t.Context(), namespace, "virtclaim-interrupted") },
	} {
		r, w := io.Pipe()
		failed := make(chan error, 1)
		go func() {
			_, err := c.Upload(t.Context(), func(context.Context) (io.ReadCloser, error) { return r, nil }, nil)
			_ = r.Close()
			failed <- err
		}()
		if _, err := w.Write(content[:len(content)/2]); err != nil {
			t.Fatal(<-failed)
		}
		acctest.Eventually(t, "the pod begins to fill the claim", isMarked)
		if err := end(w); err != nil {
			t.Fatal(err)
		}
		wrong(t, <-failed, name)
		c.leavesNothing(t)
		if err := isMarked(); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.upload(t, raw); err != nil {
		t.Fatal(err)
	}
	c.holds(t, content)
}

// What a killed provider left is removed by the next one, and by Remove.
func TestAccFiller_LeftOver(t *testing.T) {
	l := acctest.Lab(t)
	c := newClaim(t, l, "left", false)
	raw, content := disk(t, "whole", 4)
	api, ok := c.Cluster.(*cluster.Client)
	if !ok {
		t.Fatal("there is no client")
	}
	c.Cluster = &killed{Client: api}
	failed := func(context.Context) (io.ReadCloser, error) { return nil, errKilled }
	_, err := c.Upload(t.Context(), failed, nil)
	wrong(t, err, "killed")
	if _, err := api.Pod(t.Context(), namespace, "virtclaim-left"); err != nil {
		t.Errorf("it left no pod: %v", err)
	}
	c.Cluster = api
	if _, err := c.upload(t, raw); err != nil {
		t.Fatal(err)
	}
	c.holds(t, content)
	c.Cluster = &killed{Client: api}
	_, err = c.Upload(t.Context(), failed, nil)
	wrong(t, err, "killed")
	c.Cluster = api
	if err := c.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	c.leavesNothing(t)
	if err := c.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

// The rights in populator.yaml are those that are needed, and no more.
func TestAccFiller_Rights(t *testing.T) {
	l := acctest.Lab(t)
	c := newClaim(t, l, "rights", false)
	manifest := "../cluster/rbac/populator.yaml"
	acctest.MustShell(t, l, "kubectl --namespace populator apply --filename "+manifest)
	t.Cleanup(func() { acctest.MustShell(t, l, "kubectl --namespace populator delete --filename "+manifest) })
	noted := &rights{used: map[string]bool{}}
	c.Cluster = client(t, l, func(config *rest.Config) {
		config.Impersonate.UserName = "system:serviceaccount:virtclaim:virtclaim-reserver"
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			noted.next = next
			return noted
		})
	})
	raw, content := disk(t, "allowed", 4)
	acctest.Eventually(t, "the rights hold", func() error { return c.Remove(t.Context()) })
	if _, err := c.upload(t, raw); err != nil {
		t.Fatal(err)
	}
	c.holds(t, content)
	_, err := c.upload(t, raw)
	wrong(t, err, "its last event", "its last lines")

	text, _, _ := strings.Cut(string(acctest.Must(os.ReadFile(manifest))(t)), "\n---\n")
	var role rbacv1.Role
	if err := yaml.UnmarshalStrict([]byte(text), &role); err != nil {
		t.Fatal(err)
	}
	granted := map[string]bool{}
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				granted[verb+" "+resource] = true
			}
		}
	}
	noted.used["list pods"] = true // with an older API server
	if diff := cmp.Diff(granted, noted.used); diff != "" {
		t.Errorf("-in the manifest, +used: %s", diff)
	}
}
