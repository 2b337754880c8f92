//go:build acc

package artefact

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// controlPlane is one run of the program.
type controlPlane struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan error
}

// startControlPlane returns when it is ready.
func startControlPlane(t *testing.T, program, dir string, port int) *controlPlane {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "-dir", dir, "-port", strconv.Itoa(port))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started := &controlPlane{cmd: cmd, stdin: stdin, ended: make(chan error, 1)}
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(stdout).ReadString('\n')
		line <- text
		started.ended <- cmd.Wait()
	}()
	if got := within(t, time.Minute, "the start of the control plane", line); got != "READY\n" {
		t.Fatalf("the control plane said %q, want READY", got)
	}
	return started
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

func clientFor(t *testing.T, kubeconfig, context string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: context},
	).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAccControlPlane_SurvivesRestarts(t *testing.T) {
	program, err := ControlPlane(t.Context(), realCache(t), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	dir, port := filepath.Join(t.TempDir(), "state"), freePort(t)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	var before []byte
	for i, stop := range []func(*controlPlane) error{
		func(c *controlPlane) error { return c.stdin.Close() },
		func(c *controlPlane) error { return c.cmd.Process.Signal(syscall.SIGTERM) },
		func(c *controlPlane) error { return c.cmd.Process.Signal(os.Interrupt) },
	} {
		running := startControlPlane(t, program, dir, port)
		admin := clientFor(t, kubeconfig, "")
		if i == 0 {
			createVolumeAndClaim(t, admin)
			before, err = os.ReadFile(kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
		}
		waitBound(t, admin)
		if err := stop(running); err != nil {
			t.Fatal(err)
		}
		if err := within(t, time.Minute, "the stop of the control plane", running.ended); err != nil {
			t.Errorf("the control plane ended with %v", err)
		}
	}
	after, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("the kubeconfig has changed (-before +after):\n%s", diff)
	}
}

func TestAccControlPlane_RefusesStrangers(t *testing.T) {
	program, err := ControlPlane(t.Context(), realCache(t), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "state")
	startControlPlane(t, program, dir, freePort(t))

	reader := clientFor(t, filepath.Join(dir, "kubeconfig"), "reader")
	_, err = reader.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("the reader gets %v for a list of volumes, want forbidden", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode(); mode.IsRegular() && mode.Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", entry.Name(), mode)
		}
	}
}

// make demo starts no node, so it does not wait for the build of kubelet.
func TestAccControlPlane_ContainsNoKubelet(t *testing.T) {
	packages, err := goTool(t.Context(), "../controlplane", "list", "-deps", ".")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(packages)
	for program, want := range map[string]bool{"kube-apiserver": true, "kubelet": false} {
		if got := slices.Contains(all, "k8s.io/kubernetes/cmd/"+program+"/app"); got != want {
			t.Errorf("the control plane contains %s: %t, want %t", program, got, want)
		}
	}
}

func TestAccKubelet_IsOfTheModulesVersion(t *testing.T) {
	program, err := Kubelet(t.Context(), realCache(t), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	version, err := goTool(t.Context(), "../controlplane", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	got, err := output(t.Context(), "", program, "--version")
	if err != nil || string(got) != "Kubernetes "+version+"\n" {
		t.Errorf("kubelet says that it is %q, %v, want Kubernetes %s", got, err, version)
	}
}

func createVolumeAndClaim(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes, block, noClass := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, corev1.PersistentVolumeBlock, ""
	_, err := client.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "volume"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, VolumeMode: &block,
			PersistentVolumeSource: corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{
				TargetPortal: "127.0.0.1:3260", IQN: "iqn.2020-01.example:disk", Lun: 1,
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, VolumeMode: &block, StorageClassName: &noClass,
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// waitBound also proves that the protection controller works.
func waitBound(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	var claim *corev1.PersistentVolumeClaim
	for range 600 {
		var err error
		claim, err = client.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), "claim", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if claim.Status.Phase == corev1.ClaimBound && len(claim.Finalizers) > 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("the claim is %s with the finalizers %q, want it bound and protected", claim.Status.Phase, claim.Finalizers)
}
