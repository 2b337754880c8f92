//go:build acc

package volumecontent_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/pods"
)

// killPods kills the programs of pods that fill volumes; one may not have started, or have ended.
func killPods() error {
	err := exec.CommandContext(context.Background(), "pkill", "-KILL", "-f", "^/virtclaim-volume ").Run()
	if none := (*exec.ExitError)(nil); errors.As(err, &none) && none.ExitCode() == 1 {
		return nil
	}
	return err
}

// podsLeft fails the test if a pod, a Secret or a journal is left.
func podsLeft(t *testing.T, l *lab.Lab, namespace string) {
	t.Helper()
	only := metav1.ListOptions{LabelSelector: pods.Label}
	pods := acctest.Must(l.Cluster.Client.CoreV1().Pods(namespace).List(t.Context(), only))(t)
	secrets := acctest.Must(l.Cluster.Client.CoreV1().Secrets(namespace).List(t.Context(), only))(t)
	if left := journals(t, l); len(pods.Items)+len(secrets.Items)+len(left) > 0 {
		t.Errorf("left are %d pods, %d Secrets, and %v", len(pods.Items), len(secrets.Items), left)
	}
}

// At each step of a create, update and destroy by a pod, the provider is killed, loses an answer, or finds the pod killed. The next apply fills
// all of the volume, the next destroy erases it, and nothing is left.
func TestAccVolumeContent_KilledPod(t *testing.T) {
	l := acctest.Lab(t)
	const namespace = "pod-faults"
	acctest.Schedule(t, l, namespace)
	tap := acctest.TapAPI(t, l, true)
	device := acctest.Must(l.AddBlockDevice(t.Context(), acctest.StorageSize, nil))(t)
	acctest.Undo(t, func(ctx context.Context) error { return l.RemoveBlockDevice(ctx, device) })
	acctest.AddClaim(t, l, lab.ClaimSpec{
		Namespace: namespace, Name: "data", Size: acctest.StorageSize, NodeAffinity: onNode("host-a"),
		Source: &corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: device.Path}},
	})
	store := acctest.Storage{Stored: acctest.InFile(t, device.Path)}
	of := func(text string, size int) string {
		return tap.Provider(acctest.PodProvider(t, l, "content")) + filled(fmt.Sprintf("persistent_volume_claim = { namespace = %q, claim_name = \"data\" }", namespace),
			fmt.Sprintf("file = { path = %q }", imageOf(t, text, size)), "erase = true\nvia = { pod = {} }", "host-a")
	}
	one, two := of("one", imageSize), of("another", imageSize+512)

	var running *exec.Cmd
	for name, fault := range map[string]struct {
		do       func() (isLost bool, err error)
		commands []string // an update is made by the same code as a create
	}{
		"provider": {func() (bool, error) { return true, acctest.KillProvider(running) }, []string{"create", "update", "destroy"}},
		"answer":   {func() (bool, error) { return true, nil }, []string{"create"}},
		"pod":      {func() (bool, error) { return false, killPods() }, []string{"create", "destroy"}},
	} {
		for _, command := range fault.commands {
			for nth, again := 1, true; again && !t.Failed(); nth++ {
				again = false
				t.Run(fmt.Sprintf("%s/%s-%d", name, command, nth), func(t *testing.T) {
					cli := acctest.NewCLI(t)
					cli.Write("main.tf", one)
					tap.Arm(0, nil)
					do := "apply"
					if command != "create" {
						cli.Must("apply", "-auto-approve", "-no-color")
					}
					switch command {
					case "update":
						cli.Write("main.tf", two)
					case "destroy":
						do = "destroy"
					}
					tap.Arm(nth, func() bool {
						isLost, err := fault.do()
						if err != nil {
							t.Error(err)
						}
						return isLost
					})
					terraform, output := cli.Start(do, "-auto-approve", "-no-color")
					running = terraform
					err := terraform.Wait()
					step, fired := tap.Fired()
					again = fired
					if !fired && err != nil {
						t.Fatalf("without a fault: %v\n%s", err, output())
					}
					if fired && name == "provider" && err == nil {
						t.Error("the provider was not killed")
					}
					tap.Arm(0, nil)
					switch command {
					case "create":
						acctest.PutRight(t, cli, func(*testing.T) { check(t, stored(store, "one", imageSize)) })
					case "update":
						acctest.PutRight(t, cli, func(*testing.T) { check(t, stored(store, "another", imageSize+512)) })
					}
					cli.Must("destroy", "-auto-approve", "-no-color")
					check(t, stored(store, "", 0))
					podsLeft(t, l, namespace)
					if t.Failed() {
						t.Logf("the %s that was interrupted after %s: %s", command, step, output())
					}
				})
			}
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
