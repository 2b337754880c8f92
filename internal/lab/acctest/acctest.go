// Package acctest is shared by acceptance tests: one lab per test binary, the provider inside the test process, and the check that nothing
// is left.
package acctest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/provider"
)

// Factories runs the provider inside the test process.
func Factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"virtclaim": func() (tfprotov6.ProviderServer, error) {
			return provider.NewServer(provider.Release{Version: "test"}), nil
		},
	}
}

// Provider is the configuration of the provider for the lab; an empty owner means that none is set.
func Provider(l *lab.Lab, owner string) string {
	name := "null"
	if owner != "" {
		name = strconv.Quote(owner)
	}
	return fmt.Sprintf(`
provider "virtclaim" {
  owner      = %s
  kubernetes = { config_path = %q }
  hosts = {
    host-a = { uri = %q, storage = { fast = "ssd", slow = "rust" } }
    host-b = { uri = %q, storage = { fast = "ssd", slow = "rust" } }
  }
}
`, name, l.Cluster.Kubeconfig, l.Hosts["host-a"].URI, l.Hosts["host-b"].URI)
}

// Console reads the output of a guest's serial port.
type Console struct{ path string }

// NewConsole is a console that logs to its own file. The file is created here, because one that libvirt creates can be read by root only.
func NewConsole(t testing.TB) Console {
	t.Helper()
	c := Console{filepath.Join(t.TempDir(), "console.log")}
	if err := os.WriteFile(c.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// ConsoleAt is a console that logs to an existing file.
func ConsoleAt(path string) Console { return Console{path} }

// Path is the log's path, which is the same on the lab's hosts.
func (c Console) Path() string { return c.path }

// Await waits until a complete line of the log contains part, and returns that line. After a minute (of lab.Patience) it fails the test
// with the guest's output.
func (c Console) Await(t testing.TB, part string) string {
	t.Helper()
	return c.AwaitN(t, part, 1)
}

// AwaitN waits for the nth line that contains part.
func (c Console) AwaitN(t testing.TB, part string, n int) string {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(lab.Patience(time.Minute))
	for {
		if lines := c.Lines(part); len(lines) >= n {
			return lines[n-1]
		}
		select {
		case <-tick.C:
		case <-deadline:
			text, _ := os.ReadFile(c.path)
			t.Fatalf("the guest never said %q %d times; it said:\n%s", part, n, text)
		}
	}
}

// Boots is the number of a guest's boots.
func (c Console) Boots() int { return len(c.Lines("BOOT ")) }

// Lines are the complete lines of the log that contain part.
func (c Console) Lines(part string) (found []string) {
	text, _ := os.ReadFile(c.path)
	whole := string(text[:strings.LastIndexByte(string(text), '\n')+1])
	for line := range strings.Lines(whole) {
		if line = strings.TrimRight(line, "\r\n"); strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// StoredAt reads n bytes of a backing file, as the storage has them.
func StoredAt(t *testing.T, path string, offset int64, n int) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, n)
	if _, err := f.ReadAt(b, offset); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Text is the guest's output so far.
func (c Console) Text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(c.path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Contains fails the test for each part that text lacks.
func Contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in: %s", part, text)
		}
	}
}

// LUN creates a logical unit of 64 MiB for the test, with or without CHAP.
func LUN(t testing.TB, l *lab.Lab, chap bool, content string) lab.LUN {
	t.Helper()
	lun, err := l.Target.AddLUN(t.Context(), lab.LUNSpec{Size: 64 << 20, Content: []byte(content), CHAP: chap})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Target.RemoveLUN(context.Background(), lun); err != nil {
			t.Error(err)
		}
	})
	return lun
}

// Claim creates a bound claim on a logical unit for the test.
func Claim(t *testing.T, l *lab.Lab, namespace, name string, lun lab.LUN) {
	t.Helper()
	AddClaim(t, l, lab.ClaimSpec{Namespace: namespace, Name: name, LUN: lun})
}

// AddClaim creates a bound claim for the test.
func AddClaim(t testing.TB, l *lab.Lab, spec lab.ClaimSpec) {
	t.Helper()
	t.Cleanup(func() {
		if err := l.RemoveClaim(context.Background(), spec); err != nil {
			t.Error(err)
		}
	})
	if err := l.AddClaim(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

// GrowClaim sets the capacity of a claim in bytes, as a resizer would.
func GrowClaim(t *testing.T, l *lab.Lab, spec lab.ClaimSpec, bytes int64) {
	t.Helper()
	claims := l.Cluster.Client.CoreV1().PersistentVolumeClaims(spec.Namespace)
	Eventually(t, "the claim has grown", func() error {
		c, err := claims.Get(t.Context(), spec.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		c.Status.Capacity = lab.Storage(bytes)
		_, err = claims.UpdateStatus(t.Context(), c, metav1.UpdateOptions{})
		return err
	})
}

// CHAPSecret creates a secret with the target's credentials for the test.
func CHAPSecret(t *testing.T, l *lab.Lab, namespace, name string) {
	t.Helper()
	if err := l.AddNamespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if err := l.AddCHAPSecret(t.Context(), namespace, name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Cluster.Client.CoreV1().Secrets(namespace).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// Eventually retries until try succeeds, for half a minute.
func Eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(lab.Patience(30 * time.Second))
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not yet: %v", what, err)
		}
	}
}
