//go:build acc

package virtualmachine_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// Whatever happens to the claim, the machine that uses it keeps running.
func TestAccVirtualMachine_StaysWhenBindingChanges(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "stays", "data", acctest.LUN(t, l, true, "stays"))
	a, id := l.Hosts["host-a"], ""
	config := func(hosts ...string) string {
		return acctest.Provider(l, "stays") + claimBinding("stays", "data", "write-exclusive", hosts...) +
			machine{disks: []string{disk("root", "data", "virtio")}, idle: true}.hcl(l)
	}
	claims := l.Cluster.Client.CoreV1().PersistentVolumeClaims("stays")
	patch := func(body string) {
		t.Helper()
		if _, err := claims.Patch(context.Background(), "data", types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	sameRun := func(*terraform.State) error {
		if now := running(t, a); now != id {
			return fmt.Errorf("the machine was restarted: it runs as %s, and not as %s", now, id)
		}
		return nil
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config("host-a"), Check: func(*terraform.State) error { id = running(t, a); return nil }},
			{
				Config:           config("host-a", "host-b"),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            sameRun,
			},
			{
				PreConfig:        func() { patch(`{"metadata":{"annotations":{"example.org/note":"hello"}}}`) },
				Config:           config("host-a", "host-b"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				Check:            sameRun,
			},
			{
				PreConfig: func() {
					patch(`{"metadata":{"annotations":{"example.org/note":null},"finalizers":["kubernetes.io/pvc-protection","example.org/hold"]}}`)
					if err := claims.Delete(context.Background(), "data", metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				},
				Config:           config("host-a", "host-b"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				Check:            sameRun,
			},
			{
				// A claim that is being deleted does not block a destroy either.
				PreConfig: func() { suspended(t, a) },
				Config:    config("host-a", "host-b"),
				Destroy:   true,
				Check: func(*terraform.State) error {
					patch(`{"metadata":{"finalizers":null}}`)
					return nil
				},
			},
		},
	})
}

// A host or an API server that does not answer is an error, and nothing is removed from the state.
func TestAccVirtualMachine_UnreachableIsError(t *testing.T) {
	l := acctest.Lab(t)
	a := l.Hosts["host-a"]
	acctest.Claim(t, l, "down", "data", acctest.LUN(t, l, false, "down"))
	id := ""
	config := acctest.Provider(l, "down") + claimBinding("down", "data", "write-exclusive", "host-a") +
		machine{disks: []string{disk("root", "data", "virtio")}, idle: true}.hcl(l)
	must := func(f func(context.Context) error) func() {
		return func() {
			if err := f(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	unchanged := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config, Check: func(*terraform.State) error { id = running(t, a); return nil }},
			{
				PreConfig: must(a.Stop), Config: config, PlanOnly: true,
				ExpectError: regexp.MustCompile(`(?s)machine could not be read.*host-a`),
			},
			{PreConfig: must(a.Start), Config: config, ConfigPlanChecks: unchanged},
			{
				PreConfig: must(l.Cluster.Stop), Config: config, PlanOnly: true,
				ExpectError: regexp.MustCompile(`(?s)down/data.*127\.0\.0\.1`),
			},
			{
				PreConfig: must(l.Cluster.Start), Config: config, ConfigPlanChecks: unchanged,
				Check: func(*terraform.State) error {
					if now := running(t, a); now != id {
						return fmt.Errorf("the machine was restarted: it runs as %s, and not as %s", now, id)
					}
					suspended(t, a)
					return nil
				},
			},
		},
	})
}

// A host that is down fails its own machines. Those of other hosts are not affected, unless their volume is write-exclusive: then all hosts
// must answer that they don't have it.
func TestAccGuard_UnreachableHostBlocksOnlyWriteExclusive(t *testing.T) {
	l := acctest.Lab(t)
	a, b := l.Hosts["host-a"], l.Hosts["host-b"]
	config := acctest.Provider(l, "others")
	for name, mode := range map[string]string{"shared": "read-shared", "alone": "write-exclusive"} {
		acctest.Claim(t, l, "others", name, acctest.LUN(t, l, false, name))
		config += claimBinding("others", name, mode, "host-a", "host-b")
	}
	cli := acctest.NewCLI(t)
	write := func(disks ...string) {
		off := machine{host: "host-a", name: "there", log: "/nowhere/guest.log", more: "running = false"}
		there := off.hcl(l)
		off.host, off.name, off.disks = "host-b", "web", disks
		cli.Write("main.tf", config+there+off.hcl(l))
	}
	write()
	cli.Must("apply", "-auto-approve")
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(disk("shared", "shared", "virtio"))
	cli.Must("apply", "-auto-approve", "-target="+web)
	acctest.Contains(t, acctest.Must(b.Virsh(t.Context(), "dumpxml", "web"))(t), "ua-disk-shared")
	if out, err := cli.Run("plan", "-no-color"); err == nil || !message("The machine could not be read", "Machine there: host host-a").MatchString(out) {
		t.Errorf("the machine of the host that is down: %v\n%s", err, out)
	}
	write(disk("shared", "shared", "virtio"), disk("alone", "alone", "virtio"))
	if out, err := cli.Run("apply", "-auto-approve", "-no-color", "-target="+web); err == nil || !message("web on host host-b", "is not known", "host-a").MatchString(out) {
		t.Errorf("a volume that one may have alone: %v\n%s", err, out)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	cli.Must("apply", "-auto-approve")
	cli.Must("destroy", "-auto-approve")
}
