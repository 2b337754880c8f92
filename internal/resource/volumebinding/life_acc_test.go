//go:build acc

package volumebinding_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

// secretsOn expects that number of libvirt secrets on each host.
func secretsOn(l *lab.Lab, want map[string]int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		for host, n := range want {
			out, err := l.Hosts[host].Virsh(context.Background(), "secret-list")
			if err != nil {
				return err
			}
			if got := strings.Count(out, "virtclaim-"); got != n {
				return fmt.Errorf("%s has %d secrets, not %d:\n%s", host, got, n, out)
			}
		}
		return nil
	}
}

func TestAccVolumeBinding_LifeCycle(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "life", "data", acctest.LUN(t, l, true, ""))
	acctest.Claim(t, l, "life", "other", acctest.LUN(t, l, false, ""))
	config := func(more string, hosts ...string) string {
		return acctest.Provider(l, "life") + binding(fromClaim("life", "data"), more, hosts...)
	}
	both := map[string]int{"host-a": 1, "host-b": 1}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config("", "host-a"), ConfigPlanChecks: planned(plancheck.ResourceActionCreate),
				Check: resource.ComposeTestCheckFunc(secretsOn(l, map[string]int{"host-a": 1, "host-b": 0}),
					resource.TestCheckResourceAttr(data, "access_mode", "write-exclusive"),
					resource.TestCheckResourceAttr(data, "volume.capacity", "67108864"),
					resource.TestMatchResourceAttr(data, "volume.images.0.uri", regexp.MustCompile("^iscsi://")),
					resource.TestCheckResourceAttrPair(data, "volume.images.0.auth.secret_uuid", data, "id")),
			},
			{
				Config:           config(`access_mode = "read-shared"`, "host-b", "host-a"),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: resource.ComposeTestCheckFunc(secretsOn(l, both),
					resource.TestCheckResourceAttr(data, "volume.images.0.hosts.0", "host-a"),
					resource.TestCheckResourceAttr(data, "volume.images.0.access_mode", "read-shared")),
			},
			{
				// A secret that vanished from a host is defined again, and the volume doesn't change.
				PreConfig: func() {
					out, err := l.Hosts["host-b"].Virsh(context.Background(), "secret-list")
					if err != nil {
						t.Fatal(err)
					}
					if _, err := l.Hosts["host-b"].Virsh(context.Background(), "secret-undefine", uuid.FindString(out)); err != nil {
						t.Fatal(err)
					}
				},
				Config:           config(`access_mode = "read-shared"`, "host-b", "host-a"),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            secretsOn(l, both),
			},
			{
				// So is one with a newer version in Kubernetes.
				PreConfig: func() {
					patch := []byte(`{"metadata":{"labels":{"rotated":"yes"}}}`)
					if _, err := l.Cluster.Client.CoreV1().Secrets("life").Patch(context.Background(), "data-chap",
						types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
						t.Fatal(err)
					}
				},
				Config:           config(`access_mode = "read-shared"`, "host-b", "host-a"),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            secretsOn(l, both),
			},
			{
				Config:           config("", "host-b"),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            secretsOn(l, map[string]int{"host-a": 0, "host-b": 1}),
			},
			{
				Config:           acctest.Provider(l, "life") + binding(fromClaim("life", "other"), "", "host-b"),
				ConfigPlanChecks: planned(plancheck.ResourceActionReplace),
				Check: resource.ComposeTestCheckFunc(secretsOn(l, map[string]int{"host-a": 0, "host-b": 0}),
					resource.TestCheckNoResourceAttr(data, "credentials.%")),
			},
			{
				// Hosts are in the configuration only.
				ResourceName: data, ImportState: true, ImportStateId: "life/other/data", ImportStateVerify: true,
				ImportStateVerifyIgnore: []string{"hosts", "volume.images.0.hosts"},
			},
		},
	})
}

func TestAccVolumeBinding_DirectLifeCycle(t *testing.T) {
	l := acctest.Lab(t)
	one, two := acctest.LUN(t, l, true, ""), acctest.LUN(t, l, true, "")
	config := func(lun lab.LUN, portal string, version int) string {
		return acctest.Provider(l, "direct") + binding(fmt.Sprintf(
			"iscsi = { portal = %q, iqn = %q, lun = %d, username = %q, password_wo = %q, password_wo_version = %d }",
			portal, lun.IQN, lun.Number, l.Target.Username, l.Target.Password, version), "", "host-a")
	}
	moved := strings.Replace(l.Target.Portal, "127.0.0.1", "localhost", 1)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config(one, l.Target.Portal, 1),
				Check: resource.ComposeTestCheckFunc(secretsOn(l, map[string]int{"host-a": 1}),
					// No capacity is configured: a host measured it.
					resource.TestCheckResourceAttr(data, "volume.capacity", fmt.Sprint(one.Size)),
					resource.TestCheckResourceAttr(data, "credentials.host-a", "1")),
			},
			{
				Config: config(one, l.Target.Portal, 2), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: resource.TestCheckResourceAttr(data, "credentials.host-a", "2"),
			},
			{
				// The same unit behind another portal is the same storage.
				Config: config(one, moved, 2), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: resource.TestMatchResourceAttr(data, "volume.images.0.uri", regexp.MustCompile("^iscsi://localhost:")),
			},
			{Config: config(two, moved, 2), ConfigPlanChecks: planned(plancheck.ResourceActionReplace)},
		},
	})
}

// Storage keeps its name when it moves: an image with new monitors only is not another image.
func TestAccVolumeBinding_ChangedMonitorsUpdateInPlace(t *testing.T) {
	l := acctest.Lab(t)
	ceph, image := acctest.Ceph(t, l)
	config := func(monitor string) string {
		return acctest.Provider(l, "moved") + binding(fmt.Sprintf(
			"rbd = { monitors = [%q], pool = %q, image = %q, username = %q, key_wo = %q, key_wo_version = 1 }",
			monitor, image.Pool, image.Image, ceph.User, ceph.Key), "", "host-a")
	}
	_, port, _ := strings.Cut(ceph.Monitors[0], ":")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config(ceph.Monitors[0]), ConfigPlanChecks: planned(plancheck.ResourceActionCreate),
				Check: resource.TestCheckResourceAttr(data, "volume.images.0.servers.0", ceph.Monitors[0]),
			},
			{
				Config: config("localhost:" + port), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: resource.ComposeTestCheckFunc(secretsOn(l, map[string]int{"host-a": 1}),
					resource.TestCheckResourceAttr(data, "volume.images.0.servers.0", "localhost:"+port),
					resource.TestCheckResourceAttr(data, "volume.capacity", fmt.Sprint(image.Size))),
			},
		},
	})
}
