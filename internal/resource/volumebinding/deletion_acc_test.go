//go:build acc

package volumebinding_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func TestAccVolumeBinding_DelaysClaimDeletion(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "deletion", "data", acctest.LUN(t, l, true, ""))
	cli := configured(t, l, "deletion", binding(fromClaim("deletion", "data"), "", "host-a"))
	cli.Must("apply", "-auto-approve")

	var said bytes.Buffer
	kubectl := acctest.Shell(t, l, "kubectl delete pvc data -n deletion")
	kubectl.Stdout, kubectl.Stderr = &said, &said
	if err := kubectl.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- kubectl.Wait() }()
	deleting(t, l, "deletion", "data")
	// A refresh warns, and takes some time; the claim exists all along.
	says(t, cli.Must("plan", "-no-color"), "No changes.", "Warning: About the source of the binding", "deletion/data is being deleted")
	select {
	case err := <-ended:
		t.Fatalf("kubectl did not wait: %v %s", err, &said)
	default:
	}
	heldBy(t, l, "deletion", "data", "deletion/data write-exclusive")

	// New bindings can't reserve it.
	other := configured(t, l, "late", binding(fromClaim("deletion", "data"), "", "host-a"))
	out, err := other.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("a claim that is being deleted was bound")
	}
	says(t, out, "deletion/data is being deleted", "nothing new may use it")

	cli.Must("destroy", "-auto-approve")
	if claim := acctest.ClaimNow(t, l, "deletion", "data"); claim != nil {
		t.Errorf("the claim outlived its binding, and waits for %v", claim.Finalizers)
	}
	if err := <-ended; err != nil {
		t.Errorf("%v: %s", err, &said)
	}
}

// The API server is down while the binding is destroyed: the destroy waits for it.
func TestAccVolumeBinding_DestroySurvivesAPIServerRestart(t *testing.T) {
	for _, c := range []struct {
		name   string
		doomed bool
	}{{"of a claim that stays", false}, {"of one that is being deleted", true}} {
		t.Run(c.name, func(t *testing.T) {
			l := acctest.Lab(t)
			acctest.Claim(t, l, "outage", "data", acctest.LUN(t, l, true, ""))
			// On a busy machine the start may take longer than the default.
			cli := configured(t, l, "outage", binding(fromClaim("outage", "data"), `timeouts = { delete = "30m" }`, "host-a"))
			cli.Must("apply", "-auto-approve")
			if c.doomed {
				acctest.MustShell(t, l, "kubectl delete pvc data -n outage --wait=false")
			}
			if err := l.Cluster.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			destroy, said := cli.Start("destroy", "-auto-approve", "-no-color", "-refresh=false")
			acctest.Eventually(t, "the binding is being destroyed", func() error {
				if !strings.Contains(said(), "Destroying...") {
					return errors.New(said())
				}
				return nil
			})
			if err := l.Cluster.Start(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			if err := destroy.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, said())
			}
			heldBy(t, l, "outage", "data")
			if c.doomed {
				gone(t, l, "outage", "data")
			}
		})
	}
}
