//go:build acc

package volumebinding_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	volumeprogram "github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/podimage"
)

// provisionImage pushes the image of virtclaim-volume.
func provisionImage(t *testing.T, l *lab.Lab) string {
	t.Helper()
	index := acctest.Must(podimage.Build(t.Context(), "test", "amd64"))(t)
	registry := acctest.Must(l.Registry(t.Context()))(t)
	return acctest.Must(registry.PushImage(t.Context(), "virtclaim-volume", "test", index))(t).Reference
}

// example is the binding in a file of the examples.
func example(t *testing.T, file string, replace ...string) string {
	t.Helper()
	text := string(acctest.Must(os.ReadFile(filepath.Join("../../../examples/resources/virtclaim_volume_binding", file)))(t))
	return strings.NewReplacer(append([]string{"node-a", "host-a", "10Gi", "64Mi", `"dynamic"`, `"data"`}, replace...)...).Replace(text)
}

// guest is a machine with the binding's volume. Its guest prints how the disk begins, and writes to it.
func guest(l *lab.Lab, console acctest.Console) string {
	return guestThatRuns(l, console, "printf 'written by the guest' | dd of=/dev/vda conv=notrunc,fsync 2>/dev/null; echo WRITTEN")
}

func guestThatRuns(l *lab.Lab, console acctest.Console, script string) string {
	script = base64.StdEncoding.EncodeToString([]byte(script))
	return fmt.Sprintf(`
resource "virtclaim_virtual_machine" "web" {
  host       = "host-a"
  name       = "web"
  memory     = "128Mi"
  force_stop = true
  machine    = { type = "pc", domain_type = "qemu" }
  boot       = { kernel = %q, initrd = %q, cmdline = "%s virtclaim.run=%s" }
  serial     = { log_file = %q }
  disks      = { data = { volume = virtclaim_volume_binding.data.volume } }
}
`, l.Guest.Kernel, l.Guest.Initrd, l.Guest.Parameters, script, console.Path())
}

// others are what the folder of volumes has that is not provision's: it says so, and leaves all of it.
var others = []string{"notes.txt", "old-volume/disk.img", "kept/disk.img"}

// addOthers adds them, and a link in the place of what an interrupted request leaves.
func addOthers(t *testing.T, folder string) {
	t.Helper()
	for _, name := range others {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("not a volume"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("kept", filepath.Join(folder, ".new-"+strings.Repeat("0", 32))); err != nil {
		t.Fatal(err)
	}
}

// othersLeft checks that they are as they were, and that the log of provision names them.
func othersLeft(t *testing.T, folder, log string) {
	t.Helper()
	says(t, log, "leaves alone in /volume/", `: "kept", "notes.txt", "old-volume"`)
	for _, name := range others {
		if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(text) != "not a volume" {
			t.Errorf("%s has %q: %v", name, text, err)
		}
	}
}

// A pod of virtclaim-volume makes a LUN with CHAP. What a guest writes is there when it is started again, also after the pod was.
func TestAccVolumeBinding_DynamicProvision(t *testing.T) {
	l := acctest.Lab(t)
	node := acctest.Schedule(t, l, "vms")
	folder := folderClaim(t, l, "vms", "volumes")
	console := acctest.NewConsole(t)
	cli := configured(t, l, "provision", example(t, "resource_dynamic.tf", "ghcr.io/virtclaim/virtclaim-volume:0.1.0", provisionImage(t, l))+guest(l, console))
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "DISK vda bytes=67108864 ro=0")
	console.Await(t, "WRITTEN")
	says(t, cli.Must("plan", "-no-color"), "No changes.")

	pod := strings.TrimSpace(acctest.MustShell(t, l, "kubectl --namespace vms get pod --selector virtclaim.io/binding --output name"))
	pod = strings.TrimPrefix(pod, "pod/")
	password := acctest.MustShell(t, l, "kubectl --namespace vms get secret "+pod+" --output jsonpath='{.data.node\\.session\\.auth\\.password}' | base64 --decode")
	for name, text := range map[string]string{
		"state": string(acctest.Must(os.ReadFile(filepath.Join(cli.Dir, "terraform.tfstate")))(t)),
		"log":   acctest.Must(node.PodLog(t.Context(), "vms", pod, ""))(t),
		"XML":   acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "dumpxml", "web"))(t),
	} {
		if len(password) != 16 || strings.Contains(text, password) {
			t.Errorf("the password of %d bytes is in the %s", len(password), name)
		}
	}
	volumes := filepath.Dir(acctest.Must(filepath.Glob(filepath.Join(folder, "*", "volume-*")))(t)[0])
	addOthers(t, volumes)
	for _, command := range [][]string{{"destroy", "web"}, {"start", "web"}} {
		if out, err := l.Hosts["host-a"].Virsh(t.Context(), command...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if command[0] == "destroy" { // the server is started again, too
			_ = exec.CommandContext(t.Context(), "pkill", "-KILL", "-f", "^/virtclaim-volume provision").Run()
			acctest.MustShell(t, l, "kubectl --namespace vms wait --timeout=120s --for=jsonpath='{.status.containerStatuses[0].restartCount}'=1 pod/"+pod)
			acctest.MustShell(t, l, "kubectl --namespace vms wait --timeout=120s --for=condition=Ready pod/"+pod)
		}
	}
	console.Await(t, "first=written by the guest")

	restarted := acctest.Must(node.PodLog(t.Context(), "vms", pod, ""))(t)
	cli.Must("destroy", "-auto-approve", "-no-color")
	othersLeft(t, volumes, restarted)
	if left := acctest.Must(filepath.Glob(filepath.Join(folder, "*", "volume-*")))(t); len(left) > 0 {
		t.Errorf("there is %q", left)
	}
}

// An overlay over a volume that a pod made of a container image has what its guest writes, and the volume stays as it was made.
func TestAccVolumeBinding_DynamicBelowOverlay(t *testing.T) {
	l := acctest.Lab(t)
	node := acctest.Schedule(t, l, "vms")
	folder := folderClaim(t, l, "vms", "volumes")
	tap := acctest.TapAPI(t, l, true)
	made := make([]byte, 8<<20)
	copy(made, "made on demand")
	registry := acctest.Must(l.Registry(t.Context()))(t)
	image := acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "disk", Tag: "demand", Layers: []lab.ImageLayer{{Files: map[string][]byte{"disk/disk.img": made}}},
	}))(t)
	console := acctest.NewConsole(t)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", tap.Provider(acctest.Provider(l, "overlay"))+example(t, "resource_dynamic.tf",
		"ghcr.io/virtclaim/virtclaim-volume:0.1.0", provisionImage(t, l), `"provision", `, fmt.Sprintf(`"provision", "-image=%s", `, tap.NameRegistry(node)(image)))+`
resource "virtclaim_disk" "over" {
  host       = "host-a"
  name       = "over"
  usage_type = "fast"
  copy_mode  = "copy-on-write"
  source     = { volume = virtclaim_volume_binding.data.volume }
}
`+strings.Replace(guest(l, console), "virtclaim_volume_binding.data", "virtclaim_disk.over", 1))
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, console.Await(t, "DISK vda "), "bytes=67108864 ro=0", "first=made on demand")
	console.Await(t, "WRITTEN")
	for _, command := range []string{"destroy", "start"} {
		acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), command, "web"))(t)
	}
	console.Await(t, "first=written by the guest")
	volumes := acctest.Must(filepath.Glob(filepath.Join(folder, "*", "volume-*", "disk.img")))(t)
	if len(volumes) != 1 || acctest.StoredAt(t, volumes[0], 0, len(made)) != string(made) {
		t.Errorf("of %q the one volume is not as it was made", volumes)
	}
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// volumesServer is provision as a server.
type volumesServer struct {
	folder, address, ca string
	said                *acctest.LockedBuffer
}

// example is a binding of the server.
func (s volumesServer) example(t *testing.T) string {
	t.Helper()
	return example(t, "resource_dynamic_server.tf", "https://volumes.example.org", "https://"+s.address, "volumes-ca.pem", s.ca)
}

func serveVolumes(t *testing.T, l *lab.Lab, args ...string) volumesServer {
	t.Helper()
	folder, keys := t.TempDir(), t.TempDir()
	tlsServer := httptest.NewTLSServer(nil) // for its certificate
	tlsServer.Close()
	key := acctest.Must(x509.MarshalPKCS8PrivateKey(tlsServer.TLS.Certificates[0].PrivateKey))(t)
	for name, text := range map[string][]byte{
		"ca.pem":  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tlsServer.Certificate().Raw}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), "token": []byte("let-me-in"),
		"node.session.auth.username": []byte("vms"), "node.session.auth.password": []byte("let-the-hosts-in"),
	} {
		if err := os.WriteFile(filepath.Join(keys, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.AddNamespace(t.Context(), "vms"); err != nil {
		t.Fatal(err)
	}
	for name, values := range map[string]map[string]string{
		"volumes": {"token": "let-me-in"},
		"chap":    {"node.session.auth.username": "vms", "node.session.auth.password": "let-the-hosts-in"},
	} {
		if err := l.AddSecret(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: name}, StringData: values}); err != nil {
			t.Fatal(err)
		}
		acctest.Undo(t, func(ctx context.Context) error { return l.RemoveSecret(ctx, "vms", name) })
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	said, done := &acctest.LockedBuffer{}, make(chan int, 1)
	go func() {
		done <- volumeprogram.Run(ctx, append([]string{
			"provision", "-folder=" + folder, "-listen=127.0.0.1:0", "-iscsi-listen=127.0.0.1:0", "-portal=127.0.0.1", "-token-file=" + filepath.Join(keys, "token"),
			"-tls-cert=" + filepath.Join(keys, "ca.pem"), "-tls-key=" + filepath.Join(keys, "tls.key"), "-chap=" + keys, "-chap-secret=chap",
		}, args...), "test", said)
	}()
	acctest.Undo(t, func(context.Context) error {
		stop()
		if code := <-done; code != 0 {
			return fmt.Errorf("the server ended with %d: %s", code, said)
		}
		return nil
	})
	s := volumesServer{folder: folder, ca: filepath.Join(keys, "ca.pem"), said: said}
	acctest.Eventually(t, "the server listens", func() error {
		m := regexp.MustCompile(`waits at (\S+) for requests`).FindStringSubmatch(said.String())
		if m == nil {
			return errors.New(said.String())
		}
		s.address = m[1]
		return nil
	})
	return s
}

// A server has the volumes of several bindings.
func TestAccVolumeBinding_DynamicServer(t *testing.T) {
	l := acctest.Lab(t)
	server := serveVolumes(t, l)
	folder, said := server.folder, server.said
	one := server.example(t)
	console := acctest.NewConsole(t)
	cli := configured(t, l, "server", one+strings.ReplaceAll(one, `"data"`, `"more"`)+guest(l, console))
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "WRITTEN")
	if made := acctest.Must(filepath.Glob(filepath.Join(folder, "volume-*")))(t); len(made) != 2 {
		t.Errorf("there is %q", made)
	}
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	for _, text := range []string{string(acctest.Must(os.ReadFile(filepath.Join(cli.Dir, "terraform.tfstate")))(t)), said.String()} {
		if strings.Contains(text, "let-me-in") || strings.Contains(text, "let-the-hosts-in") {
			t.Errorf("a secret is in %s", text)
		}
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
	if left := acctest.Must(filepath.Glob(filepath.Join(folder, "volume-*")))(t); len(left) > 0 {
		t.Errorf("there is %q", left)
	}
}
