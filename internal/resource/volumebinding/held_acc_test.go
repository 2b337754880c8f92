//go:build acc

package volumebinding_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
)

// holders are the holders of a claim as "owner/name mode", sorted. A claim without holders must not have virtclaim's finalizer either.
func holders(t *testing.T, l *lab.Lab, namespace, name string) (held []string) {
	t.Helper()
	claim := acctest.ClaimNow(t, l, namespace, name)
	if claim == nil {
		return nil
	}
	for _, r := range reservation.Look(claim) {
		held = append(held, fmt.Sprintf("%s/%s %s", r.Owner, r.Name, r.Mode))
	}
	if has := slices.Contains(claim.Finalizers, reservation.Finalizer); has != (len(held) > 0) {
		t.Errorf("%s/%s is held by %v, and its finalizers are %v", namespace, name, held, claim.Finalizers)
	}
	slices.Sort(held)
	return held
}

// heldBy fails the test unless exactly those bindings hold the claim.
func heldBy(t *testing.T, l *lab.Lab, namespace, name string, want ...string) {
	t.Helper()
	if got := holders(t, l, namespace, name); !slices.Equal(got, want) {
		t.Errorf("%s/%s is held by %q, not by %q", namespace, name, got, want)
	}
}

// configured is a folder with a configuration of that owner.
func configured(t *testing.T, l *lab.Lab, owner, config string) acctest.CLI {
	t.Helper()
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, owner)+config)
	return cli
}

// isEmpty reports whether the state of a folder is empty.
func isEmpty(t *testing.T, cli acctest.CLI) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cli.Dir, "terraform.tfstate"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return !strings.Contains(string(text), `"type": "virtclaim_`)
}

// says fails the test when a command did not print all parts.
func says(t *testing.T, printed string, parts ...string) {
	t.Helper()
	if !message(slices.Clone(parts)...).MatchString(printed) {
		t.Errorf("%q is not in:\n%s", parts, printed)
	}
}

// deleting waits until the claim is being deleted.
func deleting(t *testing.T, l *lab.Lab, namespace, name string) {
	t.Helper()
	acctest.Eventually(t, "the claim is being deleted", func() error {
		claim := acctest.ClaimNow(t, l, namespace, name)
		if claim == nil {
			t.Fatal("the claim is gone")
		}
		if claim.DeletionTimestamp == nil {
			return errors.New("it is not")
		}
		return nil
	})
}

// gone waits until the claim is gone.
func gone(t *testing.T, l *lab.Lab, namespace, name string) {
	t.Helper()
	acctest.Eventually(t, "the claim is gone", func() error {
		if claim := acctest.ClaimNow(t, l, namespace, name); claim != nil {
			return fmt.Errorf("it waits for %v", claim.Finalizers)
		}
		return nil
	})
}

// once is the access mode ReadWriteOnce.
var once = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}

// web is a machine on host-a that has the binding's volume as its disk vol.
func web(l *lab.Lab, console acctest.Console) string {
	return fmt.Sprintf(`
resource "virtclaim_virtual_machine" "web" {
  host    = "host-a"
  name    = "web"
  memory  = "128Mi"
  machine = { type = "pc", domain_type = "qemu" }
  boot = {
    kernel  = %q
    initrd  = %q
    cmdline = "%s virtclaim.disks=1"
  }
  serial     = { log_file = %q }
  disks      = { vol = { volume = %s.volume } }
  force_stop = true
}
`, l.Guest.Kernel, l.Guest.Initrd, l.Guest.Parameters, console.Path(), data)
}
