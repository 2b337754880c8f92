//go:build acc

package volumebinding_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
)

// copied is a copy of a folder, with its state or without.
func copied(t *testing.T, from acctest.CLI, withState bool) acctest.CLI {
	t.Helper()
	to := acctest.NewCLI(t)
	files := []string{"main.tf"}
	if withState {
		files = append(files, "terraform.tfstate")
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(from.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		to.Write(name, string(text))
	}
	return to
}

// noncesOf are the nonces on the claim data.
func noncesOf(t *testing.T, l *lab.Lab, namespace string) (all []string) {
	t.Helper()
	for _, r := range reservation.Look(acctest.ClaimNow(t, l, namespace, "data")) {
		all = append(all, r.Nonces...)
	}
	return all
}

// unharmed fails the test when the machine web has lost its disk or can't be started.
func unharmed(t *testing.T, l *lab.Lab, lun lab.LUN) {
	t.Helper()
	out, err := l.Hosts["host-a"].Virsh(t.Context(), "domblklist", "web", "--inactive")
	if err != nil || !strings.Contains(out, unit(lun)) {
		t.Fatalf("the machine of the other state has lost its disk: %v\n%s", err, out)
	}
	if err := secretsOn(l, map[string]int{"host-a": 1})(nil); err != nil {
		t.Errorf("the machine of the other state has lost its credentials: %s", err)
	}
}

// A configuration's folder is copied: of two states with one owner the later one gets a warning, and its destroy leaves the machines, the
// credentials and the reservation of the first alone.
func TestAccVolumeBinding_TwoStatesOfOneOwner(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, true, "")
	acctest.Claim(t, l, "twice", "data", lun)
	config := strings.Replace(binding(fromClaim("twice", "data"), "", "host-a")+web(l, acctest.NewConsole(t)), "force_stop = true", "running = false", 1)
	first := configured(t, l, "twice", config)
	first.Must("apply", "-auto-approve")
	own := noncesOf(t, l, "twice")

	second := copied(t, first, false)
	out, err := second.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Fatal("the machine was made twice")
	}
	says(t, out, `of the same owner "twice"`, "a copy of its folder")
	says(t, first.Must("plan", "-no-color"), "Warning: Another instance of the binding holds the claim", "another state")
	second.Must("destroy", "-auto-approve")
	unharmed(t, l, lun)
	if got := noncesOf(t, l, "twice"); !slices.Equal(got, own) {
		t.Errorf("the claim is held by %v, not by %v", got, own)
	}
	first.Must("apply", "-auto-approve") // the credentials have its own nonce again
	says(t, first.Must("plan", "-no-color"), "No changes.")

	second = copied(t, first, true)
	second.Must("state", "rm", "virtclaim_virtual_machine.web") // both states have the machine's UUID
	second.Write("main.tf", acctest.Provider(l, "twice")+binding(fromClaim("twice", "data"), "", "host-a"))
	first.Must("apply", "-auto-approve", "-replace="+data)
	out, err = second.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("the claim is held for both states")
	}
	says(t, out, "Warning: Another state holds the claim", "Error: The binding could not be updated", "another state")
	second.Must("destroy", "-auto-approve")
	unharmed(t, l, lun)
	says(t, first.Must("plan", "-no-color"), "No changes.")
	first.Must("destroy", "-auto-approve")
	heldBy(t, l, "twice", "data")
}
