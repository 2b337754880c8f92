//go:build acc

package volumebinding_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// as is a provider's configuration with the rights of a manifest (reader or reserver), except for those on some resources, during the test.
func as(t *testing.T, l *lab.Lab, config, manifest string, without ...string) string {
	t.Helper()
	root, err := lab.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "internal", "cluster", "rbac", manifest+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range without {
		text = bytes.ReplaceAll(text, []byte("resources: ["+kind+"]"), []byte("resources: [nothing]"))
	}
	file := filepath.Join(t.TempDir(), manifest+".yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.AddNamespace(t.Context(), "virtclaim"); err != nil {
		t.Fatal(err)
	}
	acctest.MustShell(t, l, "kubectl apply -f "+file)
	t.Cleanup(func() { acctest.MustShell(t, l, "kubectl delete --ignore-not-found -f "+file) })
	account := "virtclaim-" + manifest
	acctest.Eventually(t, "the rights hold", func() error {
		asked := "kubectl auth can-i get persistentvolumes --as system:serviceaccount:virtclaim:" + account
		if out, _ := acctest.Shell(t, l, asked).Output(); strings.TrimSpace(string(out)) != "yes" {
			return errors.New(string(out))
		}
		return nil
	})
	token := strings.TrimSpace(acctest.MustShell(t, l, "kubectl create token -n virtclaim "+account))
	rest, err := clientcmd.BuildConfigFromFlags("", l.Cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(config, fmt.Sprintf("config_path = %q", l.Cluster.Kubeconfig),
		fmt.Sprintf("host = %q, cluster_ca_certificate = %q, token = %q", rest.Host, rest.CAData, token), 1)
}

func TestAccVolumeBinding_ReadOnlyCredentials(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "rights", "data", acctest.LUN(t, l, true, ""))
	config := as(t, l, acctest.Provider(l, "rights")+binding(fromClaim("rights", "data"), "", "host-a"), "reader")
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", config)
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("a claim was bound without a reservation")
	}
	says(t, out, "The volume could not be bound", "forbidden", "allow these credentials to patch persistentvolumeclaims", "or set reserve_claims = false")
	if !isEmpty(t, cli) {
		t.Error("something is in the state")
	}

	cli.Write("main.tf", unreserved(config))
	out = cli.Must("apply", "-auto-approve", "-no-color")
	says(t, out, "Warning: Claims are not reserved", "another configuration may take it")
	heldBy(t, l, "rights", "data")
	plan := cli.Must("plan", "-no-color")
	says(t, plan, "No changes.", "Warning: Claims are not reserved")
	cli.Must("destroy", "-auto-approve")
}

// The manifest has all rights that a reservation requires.
func TestAccVolumeBinding_ReservingCredentials(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "rights", "data", acctest.LUN(t, l, true, ""))
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", as(t, l, acctest.Provider(l, "rights")+binding(fromClaim("rights", "data"), "", "host-a"), "reserver"))
	cli.Must("apply", "-auto-approve")
	heldBy(t, l, "rights", "data", "rights/data write-exclusive")
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") || strings.Contains(plan, "forbidden") {
		t.Errorf("the plan says:\n%s", plan)
	}
	cli.Must("destroy", "-auto-approve")
	heldBy(t, l, "rights", "data")
}

// If the right to write is revoked while a claim is reserved, the error has the command that releases it.
func TestAccVolumeBinding_ReleaseForbidden(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "rights", "data", acctest.LUN(t, l, true, ""))
	config := acctest.Provider(l, "rights") + binding(fromClaim("rights", "data"), "", "host-a")
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve")

	reads := unreserved(as(t, l, config, "reader"))
	cli.Write("main.tf", reads)
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("it was released without the right to do so")
	}
	says(t, out, "The binding could not be updated", "may still be reserved", "forbidden", "allow these credentials to patch persistentvolumeclaims")
	silent(t, out, "or set reserve_claims")
	heldBy(t, l, "rights", "data", "rights/data write-exclusive")
	cli.Write("main.tf", config)
	says(t, cli.Must("plan", "-no-color"), "No changes.")

	release := printed(out, "kubectl")
	if len(release) != 1 {
		t.Fatalf("%d commands are printed:\n%s", len(release), out)
	}
	acctest.MustShell(t, l, release[0])
	heldBy(t, l, "rights", "data")
	cli.Write("main.tf", reads)
	cli.Must("apply", "-auto-approve")
	cli.Must("destroy", "-auto-approve")
}
