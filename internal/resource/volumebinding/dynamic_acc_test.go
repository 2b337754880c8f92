//go:build acc

package volumebinding_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// folderClaim is a claim whose filesystem is a folder of this machine.
func folderClaim(t *testing.T, l *lab.Lab, namespace, name string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	acctest.AddClaim(t, l, lab.ClaimSpec{
		Namespace: namespace, Name: name, Filesystem: true, Size: 64 << 20,
		Source: &corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: folder}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"host-a"}}},
		}}}},
	})
	return folder
}

// volumeserver is testdata/volumeserver in a container image.
var volumeserver = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "volumeserver-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "volumeserver")
	build := exec.Command("go", "build", "-o", path, "./testdata/volumeserver")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, said)
	}
	return os.ReadFile(path)
})

// controlled is a namespace whose pods are run, with an image of volumeserver and the folder that controls it.
type controlled struct {
	t                        *testing.T
	l                        *lab.Lab
	namespace, image, folder string
}

func control(t *testing.T, l *lab.Lab, namespace string) controlled {
	t.Helper()
	acctest.Schedule(t, l, namespace)
	program := acctest.Must(volumeserver())(t)
	registry := acctest.Must(l.Registry(t.Context()))(t)
	image := acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "volumeserver", Tag: "test", Entrypoint: []string{"/volumeserver"},
		Layers: []lab.ImageLayer{{Programs: map[string][]byte{"volumeserver": program}}},
	}))(t)
	return controlled{t, l, namespace, image.Reference, folderClaim(t, l, namespace, "control")}
}

// say has the server answer otherwise; with an empty text, as usual.
func (c controlled) say(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.folder, name), []byte(text), 0o666); err != nil {
		c.t.Fatal(err)
	}
}

// lunAnswer is the answer with a LUN of the lab, as the design's second example has it.
func lunAnswer(l *lab.Lab, lun lab.LUN) string {
	host, port, _ := net.SplitHostPort(l.Target.Portal)
	return fmt.Sprintf("iscsi:\n  host:\n    name: %s\n    port: %q\n  portal: %s\nlun: %d\n", host, port, lun.IQN, lun.Number)
}

// asked are the requests since the last call.
func (c controlled) asked() string {
	c.t.Helper()
	path := filepath.Join(c.folder, "asked")
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	_ = os.Remove(path)
	return strings.Join(strings.Fields(string(text)), " ")
}

// volumes is how many volumes the server has.
func (c controlled) volumes(want int) {
	c.t.Helper()
	if found := acctest.Must(filepath.Glob(filepath.Join(c.folder, "volume-*")))(c.t); len(found) != want {
		c.t.Errorf("there are %d volumes, and not %d: %q", len(found), want, found)
	}
}

// objects is how many pods of volumes and Secrets of them are there.
func (c controlled) objects(want int) {
	c.t.Helper()
	only := metav1.ListOptions{LabelSelector: "virtclaim.io/binding"}
	ctx := context.WithoutCancel(c.t.Context())
	pods := acctest.Must(c.l.Cluster.Client.CoreV1().Pods(c.namespace).List(ctx, only))(c.t)
	secrets := acctest.Must(c.l.Cluster.Client.CoreV1().Secrets(c.namespace).List(ctx, only))(c.t)
	if len(pods.Items) != want || len(secrets.Items) != want {
		c.t.Errorf("there are %d pods and %d Secrets, and not %d", len(pods.Items), len(secrets.Items), want)
	}
}

// source is a dynamic source of volumeserver.
func (c controlled) source(parameters, more string) string {
	return fmt.Sprintf(`dynamic = {
    parameters = { %s }
    container = {
      namespace = %q
      image     = %q
      ports     = [{ container_port = 8080 }]
      scheme    = "http"
      claims    = [{ claim_name = "control", mount_path = "/control" }]
      %s
    }
  }`, parameters, c.namespace, c.image, more)
}

// The pod answers with a claim, as the design's first example does. It is made again when it is gone, replaced with other parameters, and gone
// after a destroy, but only once it has removed the volume.
func TestAccVolumeBinding_DynamicClaim(t *testing.T) {
	l := acctest.Lab(t)
	c := control(t, l, "dynamic")
	acctest.Claim(t, l, "dynamic", "made", acctest.LUN(t, l, true, ""))
	c.say("answer", "pvc:\n  claimname: made\n")
	cli := configured(t, l, "dynamic", binding(c.source(`size = "1Gi"`, ""), "", "host-a"))

	says(t, cli.Must("plan", "-no-color"), "+ volume = (known after apply)")
	cli.Must("apply", "-auto-approve", "-no-color")
	heldBy(t, l, "dynamic", "made", "dynamic/data write-exclusive")
	c.volumes(1)
	c.objects(1)
	if got := c.asked(); got != "PUT size=1Gi" {
		t.Errorf("it was asked %q", got)
	}
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	if state := acctest.Must(os.ReadFile(filepath.Join(cli.Dir, "terraform.tfstate")))(t); strings.Contains(string(state), c.token()) {
		t.Error("the token is in the state")
	}

	// Another service account has the pod made again.
	cli.Replace("main.tf", "scheme    = \"http\"", "scheme    = \"http\"\n env = { A = \"b\" }")
	says(t, cli.Must("apply", "-auto-approve", "-no-color"), "0 added, 1 changed, 0 destroyed")
	c.volumes(1)
	acctest.MustShell(t, l, "kubectl --namespace dynamic delete pod --selector virtclaim.io/binding --wait")
	says(t, cli.Must("apply", "-auto-approve", "-no-color"), "The pod of the volume does not run", "0 added, 1 changed, 0 destroyed")
	c.volumes(1)
	c.objects(1)
	says(t, cli.Must("plan", "-no-color"), "No changes.")

	c.asked()
	cli.Replace("main.tf", `size = "1Gi"`, `size = "1Gi", pool = "b"`)
	says(t, cli.Must("apply", "-auto-approve", "-no-color"), "1 added, 0 changed, 1 destroyed")
	if got := c.asked(); got != "PUT size=1Gi DELETE PUT pool=b&size=1Gi" {
		t.Errorf("it was asked %q", got)
	}
	c.volumes(1)

	c.say("refuse", "DELETE")
	out, err := cli.Run("destroy", "-auto-approve", "-no-color")
	if err == nil {
		t.Fatal("a volume that was not removed is forgotten")
	}
	says(t, out, "refused the request (409 Conflict)", "not today")
	c.objects(1)
	heldBy(t, l, "dynamic", "made", "dynamic/data write-exclusive")
	c.say("refuse", "")
	cli.Must("destroy", "-auto-approve", "-no-color")
	c.volumes(0)
	c.objects(0)
	heldBy(t, l, "dynamic", "made")
}

func (c controlled) token() string {
	c.t.Helper()
	return acctest.MustShell(c.t, c.l, "kubectl --namespace "+c.namespace+" get secret --selector virtclaim.io/binding --output jsonpath='{.items[0].data.token}' | base64 --decode")
}

// What can't make a volume is explained, and leaves nothing.
func TestAccVolumeBinding_DynamicRefused(t *testing.T) {
	l := acctest.Lab(t)
	c := control(t, l, "dynamic-refused")
	good := c.source(`size = "1Gi"`, "")
	slow := `timeouts = { create = "20s" }`
	for _, tt := range []struct {
		name         string
		source, more string
		say          map[string]string
		wrong        []string
	}{
		{"image", strings.Replace(good, "volumeserver:test", "volumeserver:missing", 1), slow, nil, []string{"ImagePullBackOff"}},
		{"crash", good, "", map[string]string{"crash": "no disks here"}, []string{"CrashLoopBackOff", "no disks here"}},
		{"no Secret", c.source("", `secrets = [{ secret_name = "missing", mount_path = "/x" }]`), slow, nil, []string{"is not ready", "missing"}},
		{"hang", good, slow, map[string]string{"hang": "PUT"}, []string{"has not answered PUT /volume in time"}},
		{"refusal", good, "", map[string]string{"refuse": "PUT"}, []string{"409 Conflict", "not today"}},
		{"another's claim", good, "", map[string]string{"answer": "pvc: {namespace: kube-system, claimName: a}"}, []string{"unknown field", "namespace"}},
		{"file", good, "", map[string]string{"answer": "file: {path: /etc/shadow}"}, []string{"unknown field", "file"}},
		{"no claim", good, "", map[string]string{"answer": "pvc: {claimName: none}"}, []string{"PersistentVolumeClaim dynamic-refused/none"}},
		{"quantity", c.source("", `resources = { limits = { memory = "much" } }`), "", nil, []string{"no Kubernetes quantity"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, text := range tt.say {
				c.say(name, text)
				defer c.say(name, "")
			}
			cli := configured(t, l, "refused", binding(tt.source, tt.more, "host-a"))
			out, err := cli.Run("apply", "-auto-approve", "-no-color")
			if err == nil || !isEmpty(t, cli) {
				t.Errorf("it was not refused: %s", out)
			}
			says(t, out, tt.wrong...)
			c.objects(0)
			c.volumes(0)
		})
	}
	cli := configured(t, l, "", binding(good, "", "host-a"))
	out, _ := cli.Run("plan", "-no-color")
	says(t, out, "set owner")
}

// With create_before_destroy the new instance of the binding takes the volume over if its source is the same, and is refused otherwise.
func TestAccVolumeBinding_DynamicReplaced(t *testing.T) {
	l := acctest.Lab(t)
	c := control(t, l, "dynamic-replaced")
	lun := acctest.LUN(t, l, false, "")
	c.say("answer", lunAnswer(l, lun))
	cli := configured(t, l, "replaced", binding(c.source(`size = "1Gi"`, ""), "lifecycle { create_before_destroy = true }", "host-a"))
	cli.Must("apply", "-auto-approve", "-no-color")
	c.asked()
	cli.Must("apply", "-auto-approve", "-no-color", "-replace="+data)
	if got := c.asked(); got != "PUT size=1Gi PUT size=1Gi" {
		t.Errorf("it was asked %q", got)
	}
	c.volumes(1)
	c.objects(1)
	says(t, cli.Must("plan", "-no-color"), "No changes.")

	// A create that fails leaves the volume that it did not make.
	c.say("answer", "pvc: {claimName: none}")
	out, err := cli.Run("apply", "-auto-approve", "-no-color", "-replace="+data)
	if err == nil {
		t.Errorf("there is no such claim: %s", out)
	}
	c.volumes(1)
	c.objects(1)
	c.say("answer", lunAnswer(l, lun))

	before := acctest.Must(os.ReadFile(filepath.Join(cli.Dir, "main.tf")))(t)
	cli.Replace("main.tf", "volumeserver:test", "volumeserver:other")
	out, err = cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Errorf("two configurations have one pod: %s", out)
	}
	says(t, out, "was made with another configuration of this binding")
	c.volumes(1)

	// A server that has lost the volume has not it made again without a word.
	cli.Write("main.tf", string(before))
	for _, path := range acctest.Must(filepath.Glob(filepath.Join(c.folder, "volume-*")))(t) {
		_ = os.Remove(path)
	}
	acctest.MustShell(t, l, "kubectl --namespace dynamic-replaced delete pod --selector virtclaim.io/binding --wait")
	out, err = cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Errorf("an empty volume was taken for the lost one: %s", out)
	}
	says(t, out, "the volume is no longer there")
	c.volumes(0)
	cli.Must("destroy", "-auto-approve", "-no-color")
	c.objects(0)
}

// A value that is unknown in the plan, and makes another volume, is refused before anything is changed.
func TestAccVolumeBinding_DynamicUnknown(t *testing.T) {
	l := acctest.Lab(t)
	c := control(t, l, "dynamic-unknown")
	lun := acctest.LUN(t, l, false, "")
	c.say("answer", lunAnswer(l, lun))
	cli := configured(t, l, "unknown", `resource "terraform_data" "pool" { input = "a" }`+
		binding(c.source(`pool = terraform_data.pool.output`, ""), "", "host-a"))
	cli.Must("apply", "-auto-approve", "-no-color")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Replace("main.tf", `input = "a"`, `input = "b"`)
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Errorf("it was applied: %s", out)
	}
	c.volumes(1)
	says(t, cli.Must("apply", "-auto-approve", "-no-color"), "1 added, 0 changed, 1 destroyed")
	c.volumes(1)
	cli.Must("destroy", "-auto-approve", "-no-color")
	c.objects(0)
}

// A volume is not removed while anything needs it: a machine that has it by another binding, on any host; another state that has the same owner;
// and not by an instance of the binding that was replaced.
func TestAccVolumeBinding_DynamicNeeded(t *testing.T) {
	l := acctest.Lab(t)
	c := control(t, l, "dynamic-needed")
	lun := acctest.LUN(t, l, false, "")
	c.say("answer", lunAnswer(l, lun))
	config := binding(c.source("", ""), "", "host-a")
	cli := configured(t, l, "needed", config)
	cli.Must("apply", "-auto-approve", "-no-color")

	direct := fmt.Sprintf("iscsi = { portal = %q, iqn = %q, lun = %d }", l.Target.Portal, lun.IQN, lun.Number)
	off := `
resource "virtclaim_virtual_machine" "other" {
  host    = "host-b"
  name    = "other"
  memory  = "64Mi"
  running = false
  machine = { type = "pc", domain_type = "qemu" }
  disks   = { data = { volume = virtclaim_volume_binding.data.volume } }
}
`
	other := configured(t, l, "others", binding(direct, "", "host-b")+off)
	other.Must("apply", "-auto-approve", "-no-color")
	out, err := cli.Run("destroy", "-auto-approve", "-no-color")
	if err == nil {
		t.Errorf("the volume of another's machine was removed: %s", out)
	}
	says(t, out, "domain other on host host-b has the volume, by another binding")
	c.volumes(1)
	other.Must("destroy", "-auto-approve", "-no-color")

	// A copy of the configuration's folder, for another host and for the same.
	out, err = configured(t, l, "needed", binding(c.source("", ""), "", "host-b")).Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Errorf("two states have the volume on two hosts: %s", out)
	}
	says(t, out, "host host-a has another instance of the binding data")
	twin := configured(t, l, "needed", config)
	twin.Must("apply", "-auto-approve", "-no-color")
	says(t, cli.Must("destroy", "-auto-approve", "-no-color"), "left to another instance")
	c.volumes(1)
	twin.Must("destroy", "-auto-approve", "-no-color")
	c.volumes(0)
	c.objects(0)
}

// A create that finds a volume of a former state, and fails, leaves it.
func TestAccVolumeBinding_DynamicFound(t *testing.T) {
	l := acctest.Lab(t)
	c := control(t, l, "dynamic-found")
	lun := acctest.LUN(t, l, false, "")
	c.say("answer", lunAnswer(l, lun))
	cli := configured(t, l, "found", binding(c.source("", ""), "", "host-a"))
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("state", "rm", data)
	acctest.MustShell(t, l, "kubectl --namespace dynamic-found delete pod,secret --selector virtclaim.io/binding --wait")
	id := uuid.FindString(acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "secret-list"))(t))
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "secret-undefine", id))(t)

	c.say("answer", "file: {path: /none}")
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil || !isEmpty(t, cli) {
		t.Errorf("it was bound: %s", out)
	}
	c.volumes(1)
	c.objects(0)
	c.say("answer", lunAnswer(l, lun))
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
	c.volumes(0)
	c.objects(0)
}

// With create_before_destroy, a binding that gets another source leaves no pod and no volume.
func TestAccVolumeBinding_DynamicBecomesDirect(t *testing.T) {
	l := acctest.Lab(t)
	c := control(t, l, "dynamic-direct")
	c.say("answer", lunAnswer(l, acctest.LUN(t, l, false, "")))
	const first = "lifecycle { create_before_destroy = true }"
	cli := configured(t, l, "direct", binding(c.source("", ""), first, "host-a"))
	cli.Must("apply", "-auto-approve", "-no-color")
	c.volumes(1)
	lun := acctest.LUN(t, l, false, "")
	direct := fmt.Sprintf("iscsi = { portal = %q, iqn = %q, lun = %d }", l.Target.Portal, lun.IQN, lun.Number)
	cli.Write("main.tf", acctest.Provider(l, "direct")+binding(direct, first, "host-a"))
	says(t, cli.Must("apply", "-auto-approve", "-no-color"), "1 added, 0 changed, 1 destroyed")
	c.volumes(0)
	c.objects(0)
	cli.Must("destroy", "-auto-approve", "-no-color")
}
