package acctest

import (
	"context"
	"os"
	"os/exec"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

// Shell is a command of a user's shell, whose kubectl talks to the lab's cluster.
func Shell(t *testing.T, l *lab.Lab, command string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Fatal("this machine has no kubectl: ", err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", command)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Cluster.Kubeconfig)
	return cmd
}

// MustShell runs a command of a user's shell, and gives what it printed.
func MustShell(t *testing.T, l *lab.Lab, command string) string {
	t.Helper()
	out, err := Shell(t, l, command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out)
}

// ClaimNow is a claim as it is now; nil when it is gone.
func ClaimNow(t *testing.T, l *lab.Lab, namespace, name string) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim, err := l.Cluster.Client.CoreV1().PersistentVolumeClaims(namespace).Get(context.WithoutCancel(t.Context()), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return claim
}
