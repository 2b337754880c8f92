//go:build acc

package persistentvolumeclaim_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

const claim = "data.virtclaim_persistent_volume_claim.claim"

// looking is a configuration that reads a claim.
func looking(name, more string) string {
	return fmt.Sprintf(`
data "virtclaim_persistent_volume_claim" "claim" {
  namespace  = "looking"
  claim_name = %q
  %s
}
`, name, more)
}

func TestAccPersistentVolumeClaim_ReadReservesNothing(t *testing.T) {
	l := acctest.Lab(t)
	open, chap := acctest.LUN(t, l, false, ""), acctest.LUN(t, l, true, "")
	acctest.Claim(t, l, "looking", "open", open)
	acctest.Claim(t, l, "looking", "chap", chap)
	addPending(t, l)
	addPod(t, l, "open")
	binding := `
resource "virtclaim_volume_binding" "reader" {
  name        = "reader"
  hosts       = ["host-a"]
  access_mode = "read-shared"
  source      = { persistent_volume_claim = { namespace = "looking", claim_name = "chap" } }
}
`
	here := acctest.Provider(l, "looking")
	is := func(key, value string) resource.TestCheckFunc {
		return resource.TestCheckResourceAttr(claim, key, value)
	}
	none := func(key string) resource.TestCheckFunc { return resource.TestCheckNoResourceAttr(claim, key) }
	has := func(key, part string) resource.TestCheckFunc {
		return resource.TestMatchResourceAttr(claim, key, regexp.MustCompile(regexp.QuoteMeta(part)))
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: here + looking("open", ""),
				Check: resource.ComposeTestCheckFunc(
					is("phase", "Bound"), is("volume_name", "looking-open"), is("volume_mode", "Block"), is("capacity", "67108864"),
					is("access_modes.#", "2"), none("storage_class"), none("volume_error"), none("secret_ref.name"), is("bindings.#", "0"),
					has("disk_xml", fmt.Sprintf(`name="%s/%d"`, open.IQN, open.Number)),
					is("pods.#", "1"), is("pods.0.name", "reader"), is("pods.0.read_only", "true"), is("pods.0.phase", "Running"), is("pods.0.node", "node-1"),
				),
			},
			{
				// A binding's record is on the claim once the binding is created; the password is not read for it.
				Config: here + binding + looking("chap", "depends_on = [virtclaim_volume_binding.reader]"),
				Check: resource.ComposeTestCheckFunc(
					is("bindings.#", "1"), is("bindings.0.owner", "looking"), is("bindings.0.name", "reader"), is("bindings.0.access_mode", "read-shared"),
					resource.TestCheckResourceAttrPair(claim, "bindings.0.id", "virtclaim_volume_binding.reader", "id"),
					is("secret_ref.namespace", "looking"), is("secret_ref.name", "chap-chap"), is("pods.#", "0"), none("volume_error"),
				),
			},
			{
				Config: here + looking("pending", ""),
				Check: resource.ComposeTestCheckFunc(
					is("phase", "Pending"), is("storage_class", "nobody-provisions"), has("volume_error", "looking/pending is Pending"),
					none("disk_xml"), none("capacity"), is("access_modes.#", "0"),
				),
			},
			{
				Config: here + looking("open", `mount_path = "/mnt/open"`),
				Check:  resource.ComposeTestCheckFunc(has("volume_error", "mount_path: "), none("disk_xml")),
			},
			{
				Config:      here + looking("nowhere", ""),
				ExpectError: regexp.MustCompile(`No such claim(?s:.*)looking/nowhere`),
			},
			{
				Config: `provider "virtclaim" { hosts = { host-a = { uri = "qemu:///system" } } }
` + looking("open", ""),
				ExpectError: regexp.MustCompile(`The claim could not be read(?s:.*)no[\s│]+kubernetes[\s│]+block`),
			},
		},
	})
}

// addPending creates a claim that no controller binds.
func addPending(t *testing.T, l *lab.Lab) {
	t.Helper()
	spec := lab.ClaimSpec{Namespace: "looking", Name: "pending", Class: "nobody-provisions", LUN: lab.LUN{Size: 1 << 20}}
	c := l.Claim(spec)
	c.Spec.VolumeName = ""
	if _, err := l.Cluster.Client.CoreV1().PersistentVolumeClaims(spec.Namespace).Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.RemoveClaim(context.Background(), spec); err != nil {
			t.Error(err)
		}
	})
}

// addPod creates a pod that reads a claim. The cluster has no nodes: only its status says that it runs.
func addPod(t *testing.T, l *lab.Lab, claimName string) {
	t.Helper()
	no, now := false, int64(0)
	pods := l.Cluster.Client.CoreV1().Pods("looking")
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Spec: corev1.PodSpec{
			NodeName: "node-1", AutomountServiceAccountToken: &no,
			Containers: []corev1.Container{{Name: "reader", Image: "none", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName, ReadOnly: true},
			}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pods.Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Error(err)
		}
	})
	pod.Status.Phase = corev1.PodRunning
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A configuration that only looks at claims has no host to name.
func TestAccPersistentVolumeClaim_WithoutHosts(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, "")
	acctest.Claim(t, l, "looking", "open", lun)
	config := fmt.Sprintf("provider \"virtclaim\" { kubernetes = { config_path = %q } }\n", l.Cluster.Kubeconfig) + looking("open", "")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config, Check: resource.ComposeTestCheckFunc(
				resource.TestCheckResourceAttr(claim, "phase", "Bound"), resource.TestCheckNoResourceAttr(claim, "volume_error"),
			)},
			{Config: config, PlanOnly: true},
			{
				Config: config + `
resource "virtclaim_volume_binding" "data" {
  name   = "data"
  hosts  = ["host-a"]
  source = { persistent_volume_claim = { namespace = "looking", claim_name = "open" } }
}
`,
				ExpectError: regexp.MustCompile(`the\s+provider\s+has\s+no\s+hosts`),
			},
		},
	})
}
