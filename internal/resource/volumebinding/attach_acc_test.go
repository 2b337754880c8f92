//go:build acc

package volumebinding_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// attaching is a namespace with a claim that kubelet mounts.
type attaching struct {
	t         *testing.T
	l         *lab.Lab
	namespace string
	// folder has what is in the volume.
	folder string
}

func attach(t *testing.T, l *lab.Lab, namespace string) attaching {
	t.Helper()
	a := attaching{t, l, namespace, t.TempDir()}
	acctest.AddClaim(t, l, a.spec())
	t.Cleanup(func() { a.attached(0, 0) })
	return a
}

func (a attaching) spec() lab.ClaimSpec {
	return lab.ClaimSpec{
		Namespace: a.namespace, Name: "data", Filesystem: true, Size: acctest.StorageSize,
		Source: &corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: a.folder}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"host-a"}}},
		}}}},
	}
}

func (a attaching) source(more string) string {
	return fmt.Sprintf("persistent_volume_claim = { namespace = %q, claim_name = \"data\", attach = true, %s }", a.namespace, more)
}

// target is where host-a has the volume.
func (a attaching) target() string {
	a.t.Helper()
	volume := acctest.Must(a.l.Cluster.Client.CoreV1().PersistentVolumes().Get(context.WithoutCancel(a.t.Context()), a.spec().VolumeName(), metav1.GetOptions{}))(a.t)
	return "/run/libvirt/virtclaim/claim-" + string(volume.UID)
}

// pods are those of the namespace.
func (a attaching) pods() []corev1.Pod {
	a.t.Helper()
	return acctest.Must(a.l.Cluster.Client.CoreV1().Pods(a.namespace).List(context.WithoutCancel(a.t.Context()), metav1.ListOptions{}))(a.t).Items
}

// attached fails the test unless there are as many pods, and mounts on host-a, without anything else that mounting leaves.
func (a attaching) attached(pods, mounts int) {
	a.t.Helper()
	on := a.l.Hosts["host-a"]
	if n := len(a.pods()); n != pods {
		a.t.Errorf("%d pods are there, not %d", n, pods)
	}
	if n := strings.Count(a.run("cat /proc/self/mountinfo"), " /run/libvirt/virtclaim/claim-"); n != mounts {
		a.t.Errorf("%d mounts are there, not %d", n, mounts)
	}
	if found := a.run("ls -d /run/libvirt/virtclaim/claim-* 2>/dev/null || true"); mounts == 0 && found != "" {
		a.t.Errorf("left is %s", found)
	}
	if all := acctest.Must(on.Virsh(context.WithoutCancel(a.t.Context()), "pool-list", "--all", "--name"))(a.t); strings.Contains(all, "virtclaim-bind-") {
		a.t.Errorf("a pool is left: %s", all)
	}
}

func (a attaching) run(text string) string {
	a.t.Helper()
	return acctest.Must(a.l.Hosts["host-a"].Run(context.WithoutCancel(a.t.Context()), text))(a.t)
}

// Kubernetes mounts the volume as long as there are bindings of it. What is missing on the host is drift, and an apply restores it.
func TestAccVolumeBinding_Attached(t *testing.T) {
	l := acctest.Lab(t)
	a := attach(t, l, "attached")
	provider := acctest.PodProvider(t, l, "attached")
	cli := acctest.NewCLI(t)
	config := provider + binding(a.source("create_disk_image = true"), `access_mode = "read-shared"`, "host-a")
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	a.attached(1, 1)
	unchanged := func() {
		t.Helper()
		says(t, cli.Must("plan", "-no-color"), "No changes.")
	}
	unchanged()
	if is, err := os.Stat(filepath.Join(a.folder, "disk.img")); err != nil || is.Size() != acctest.StorageSize {
		t.Errorf("disk.img is %v, %v", is, err)
	}
	pod := a.pods()[0]
	missing := func() {
		t.Helper()
		says(t, cli.Must("plan", "-no-color"), "1 to change", "Warning: The volume is not mounted", "attached/"+pod.Name+" is gone")
		says(t, cli.Must("apply", "-auto-approve", "-no-color"), "1 changed")
		a.attached(1, 1)
		unchanged()
	}
	a.run("umount " + a.target())
	missing()
	acctest.MustShell(t, l, "kubectl --namespace attached delete pod "+pod.Name)
	missing()

	other := acctest.NewCLI(t)
	other.Write("main.tf", strings.Replace(config, `"attached"`, `"other"`, 1))
	other.Must("apply", "-auto-approve", "-no-color")
	a.attached(2, 1)
	cli.Must("destroy", "-auto-approve", "-no-color")
	a.attached(1, 1)
	says(t, other.Must("plan", "-no-color"), "No changes.")

	a.run("sleep 1000 <" + a.target() + "/disk.img >/dev/null 2>&1 & echo $! >/run/reader")
	out, err := other.Run("destroy", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("it was unmounted in use")
	}
	says(t, out, "could not be removed")
	if len(a.pods()) != 1 {
		t.Error("the pod is gone nevertheless")
	}
	a.run("kill $(cat /run/reader); tail --pid=$(cat /run/reader) -f /dev/null")
	other.Must("destroy", "-auto-approve", "-no-color")
}

// A replacement that fails takes nothing from the instance before, and one that succeeds leaves nothing of it that it does not need.
func TestAccVolumeBinding_AttachReplaced(t *testing.T) {
	l := acctest.Lab(t)
	a := attach(t, l, "attach-replaced")
	provider := acctest.PodProvider(t, l, "attached")
	lasting := func(source string) string {
		return binding(source, "lifecycle { create_before_destroy = true }", "host-a")
	}
	attached := lasting(a.source("create_disk_image = true"))
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", provider+attached)
	cli.Must("apply", "-auto-approve", "-no-color")
	pod := a.pods()[0].UID

	cli.Write("main.tf", strings.Replace(provider, "host-a = {", `host-a = { kubelet_root_dir = "/var/lib/elsewhere",`, 1)+attached)
	out, err := cli.Run("apply", "-auto-approve", "-no-color", "-replace="+data)
	if err == nil {
		t.Error("it is replaced")
	}
	says(t, out, "nothing is mounted there")
	a.attached(1, 1)
	cli.Write("main.tf", provider+attached)
	cli.Must("apply", "-auto-approve", "-no-color")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("apply", "-auto-approve", "-no-color", "-replace="+data)
	a.attached(1, 1)
	if is := a.pods()[0].UID; is != pod {
		t.Errorf("the pod %s has become %s", pod, is)
	}
	mounted := fmt.Sprintf("persistent_volume_claim = { namespace = \"attach-replaced\", claim_name = \"data\", mount_path = %q }", a.folder)
	cli.Write("main.tf", provider+lasting(mounted))
	cli.Must("apply", "-auto-approve", "-no-color")
	a.attached(0, 0)
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// What can't be attached is refused, at plan where that can be known.
func TestAccVolumeBinding_AttachRefused(t *testing.T) {
	l := acctest.Lab(t)
	a := attach(t, l, "attach-refused")
	provider := acctest.PodProvider(t, l, "attached")
	for name, tt := range map[string]struct{ config, command, why string }{
		"no owner": {strings.Replace(provider, `"attached"`, "null", 1) + binding(a.source(""), "", "host-a"), "plan", "set owner in the provider's configuration"},
		"no image": {acctest.Provider(l, "attached") + binding(a.source(""), "", "host-a"), "plan", "volume_image"},
		"no node": {
			strings.Replace(provider, "host-a = {", `host-a = { kubernetes_node = "elsewhere",`, 1) + binding(a.source(""), "", "host-a"), "plan",
			"the cluster has no node elsewhere",
		},
		"other folder": {
			strings.Replace(provider, "host-a = {", `host-a = { kubelet_root_dir = "/var/lib/elsewhere",`, 1) + binding(a.source(""), "", "host-a"), "apply",
			"/var/lib/elsewhere (kubelet_root_dir)",
		},
		"mounted, too":   {provider + binding(a.source(`mount_path = "/mnt"`), "", "host-a"), "plan", "Invalid Attribute Combination"},
		"folder as file": {provider + binding(a.source("shared_folder = true, create_disk_image = true"), "", "host-a"), "plan", "Invalid Attribute Combination"},
		"no disk.img":    {provider + binding(a.source(""), "", "host-a"), "apply", "set create_disk_image, or put one there"},
	} {
		t.Run(name, func(t *testing.T) {
			cli := acctest.NewCLI(t)
			cli.Write("main.tf", tt.config)
			args := []string{tt.command, "-no-color"}
			if tt.command == "apply" {
				args = append(args, "-auto-approve")
			}
			out, err := cli.Run(args...)
			if err == nil {
				t.Error("it is not refused")
			}
			says(t, out, tt.why)
			a.attached(0, 0)
			heldBy(t, l, "attach-refused", "data")
		})
	}
}

// At each step of apply and destroy the provider is killed, or loses an answer of the API server or of libvirt, or libvirt refuses. The next one goes
// on, and nothing is left in the end.
func TestAccVolumeBinding_AttachFaults(t *testing.T) {
	l := acctest.Lab(t)
	a := attach(t, l, "attach-faults")
	api := acctest.TapAPI(t, l, true)
	tap := acctest.Tap(t, l.Hosts["host-a"])
	config := api.Provider(strings.Replace(acctest.PodProvider(t, l, "faults"), l.Hosts["host-a"].URI, tap.URI, 1)) +
		binding(a.source("create_disk_image = true"), "", "host-a")
	var cli acctest.CLI
	once := func(t *testing.T, command string, arm func(*exec.Cmd), fired func() bool) (again bool) {
		t.Helper()
		a.t = t
		cli = acctest.NewCLI(t)
		cli.Write("main.tf", config)
		if command == "destroy" {
			cli.Must("apply", "-auto-approve", "-no-color")
		}
		terraform, output := cli.Start(command, "-auto-approve", "-no-color")
		arm(terraform)
		err := terraform.Wait()
		if again = fired(); !again && err != nil {
			t.Fatalf("without a fault: %v\n%s", err, output())
		}
		api.Arm(0, nil)
		tap.Arm(lab.Fault{})
		if command == "apply" {
			acctest.PutRight(t, cli, nil)
			a.attached(1, 1)
		}
		cli.Must("destroy", "-auto-approve", "-no-color")
		a.attached(0, 0)
		heldBy(t, l, "attach-faults", "data")
		if t.Failed() {
			t.Logf("the %s: %s", command, output())
		}
		return again
	}
	// Those of an apply that come later look at the file.
	calls := map[string]map[lab.Call]int{
		"apply": {lab.CallPoolCreateXML: 1, lab.CallPoolDestroy: 1},
		"destroy": {
			lab.CallPoolCreateXML: 1, lab.CallPoolDestroy: 1, lab.CallPoolDefine: 1, lab.CallPoolDelete: 1, lab.CallPoolUndefine: 1,
		},
	}
	for _, command := range []string{"apply", "destroy"} {
		for _, kill := range []bool{true, false} {
			for nth := 1; ; nth++ {
				again := false
				t.Run(fmt.Sprintf("api-%s-kill-%v-%d", command, kill, nth), func(t *testing.T) {
					again = once(t, command, func(terraform *exec.Cmd) {
						api.Arm(nth, func() bool {
							if kill {
								if err := acctest.KillProvider(terraform); err != nil {
									t.Error(err)
								}
							}
							return true
						})
					}, func() bool { _, fired := api.Fired(); return fired })
				})
				if !again || t.Failed() {
					break
				}
			}
		}
		for _, f := range acctest.Points(calls[command], []lab.Fault{{After: true, Kill: true}, {After: true}, {Refuse: true}}) {
			t.Run(command+"-"+f.String(), func(t *testing.T) {
				if !once(t, command, func(*exec.Cmd) { tap.Arm(f) }, tap.Fired) {
					t.Error("the call was never made")
				}
			})
		}
	}
}

// The rights in attacher.yaml are those that the pods of bindings need, beside those of reserver.yaml, and no more.
func TestAccVolumeBinding_AttachRights(t *testing.T) {
	l := acctest.Lab(t)
	a := attach(t, l, "attach-rights")
	manifest := "../../cluster/rbac/attacher.yaml"
	t.Cleanup(func() { acctest.MustShell(t, l, "kubectl --namespace attach-rights delete --filename "+manifest) })
	tap := acctest.TapAPI(t, l, false)
	good := as(t, l, acctest.PodProvider(t, l, "rights")+binding(a.source("create_disk_image = true"), "", "host-a"), "reserver")
	rest := acctest.Must(clientcmd.BuildConfigFromFlags("", l.Cluster.Kubeconfig))(t)
	through := strings.NewReplacer(rest.Host, tap.URL, fmt.Sprintf("%q", rest.CAData), fmt.Sprintf("%q", tap.CA))
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", through.Replace(good))
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("without the rights it is attached")
	}
	says(t, out, "pods", "is forbidden")
	a.attached(0, 0)
	heldBy(t, l, "attach-rights", "data")
	acctest.MustShell(t, l, "kubectl --namespace attach-rights apply --filename "+manifest)
	cli.Write("main.tf", through.Replace(strings.Replace(good, "virtclaim-volume", "no-such-image", 1)))
	out, err = cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("without an image it is attached")
	}
	says(t, out, "ImagePullBackOff", "its last event")
	cli.Write("main.tf", through.Replace(good))
	cli.Must("apply", "-auto-approve", "-no-color")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
	if diff := cmp.Diff(granted(t, manifest), usedOfPods(tap.Requests(), "attach-rights")); diff != "" {
		t.Errorf("-in the manifest, +used: %s", diff)
	}
}

// usedOfPods are the rights that requests need in a namespace, as far as they are about pods and their events.
func usedOfPods(requests []*http.Request, namespace string) map[string]bool {
	used := map[string]bool{}
	for _, r := range requests {
		right := rightOf(r, namespace)
		if strings.Contains(right, " pods") || strings.HasSuffix(right, " secrets") || strings.HasSuffix(right, " events") {
			used[right] = true
		}
	}
	return used
}
