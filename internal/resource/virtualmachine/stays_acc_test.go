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

// Whatever happens to the claim, the machine that uses it goes on: same domain, same boot.
func TestAccMachineStaysWhenItsBindingChanges(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "stays", "data", acctest.LUN(t, l, true, "stays"))
	console := acctest.NewConsole(t)
	config := func(hosts ...string) string {
		return acctest.Provider(l, "stays") + claimBinding("stays", "data", "write-exclusive", hosts...) +
			machine{disks: []string{disk("root", "data", "virtio")}, log: console.Path()}.hcl(l)
	}
	claims := l.Cluster.Client.CoreV1().PersistentVolumeClaims("stays")
	patch := func(body string) {
		t.Helper()
		if _, err := claims.Patch(context.Background(), "data", types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	sameBoot := func(*terraform.State) error {
		console.Await(t, "READY")
		if console.Boots() != 1 {
			return fmt.Errorf("the guest was started anew")
		}
		return nil
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config("host-a"), Check: sameBoot},
			{
				Config:           config("host-a", "host-b"),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            sameBoot,
			},
			{
				PreConfig:        func() { patch(`{"metadata":{"annotations":{"example.org/note":"hello"}}}`) },
				Config:           config("host-a", "host-b"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				Check:            sameBoot,
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
				Check:            sameBoot,
			},
			{
				// A claim that is being deleted holds up no destroy either.
				Config:  config("host-a", "host-b"),
				Destroy: true,
				Check: func(*terraform.State) error {
					patch(`{"metadata":{"finalizers":null}}`)
					return nil
				},
			},
		},
	})
}

// A host or an API server that does not answer is an error, and nothing is forgotten.
func TestAccWhatDoesNotAnswerIsAnError(t *testing.T) {
	l := acctest.Lab(t)
	a := l.Hosts["host-a"]
	acctest.Claim(t, l, "down", "data", acctest.LUN(t, l, false, "down"))
	console := acctest.NewConsole(t)
	config := acctest.Provider(l, "down") + claimBinding("down", "data", "write-exclusive", "host-a") +
		machine{disks: []string{disk("root", "data", "virtio")}, log: console.Path()}.hcl(l)
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
			{Config: config},
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
					console.Await(t, "READY")
					if console.Boots() != 1 {
						return fmt.Errorf("the guest was started anew")
					}
					return nil
				},
			},
		},
	})
}
