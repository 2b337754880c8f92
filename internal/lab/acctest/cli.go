package acctest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	goversion "github.com/hashicorp/go-version"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

// CLI runs terraform (or tofu) itself in its own folder, with the provider as built (in .lab/bin, or
// the folder VIRTCLAIM_TEST_PROVIDER), for tests of what the acceptance testing framework
// does not show: warnings, logs, and the files that are left.
type CLI struct {
	Dir string

	t   testing.TB
	env []string
	bin string // the folder of the provider
}

// NewCLI creates the folder. The environment is added to the test's own.
func NewCLI(t testing.TB, env ...string) CLI {
	t.Helper()
	bin := os.Getenv("VIRTCLAIM_TEST_PROVIDER")
	if bin == "" {
		root, err := lab.Root()
		if err != nil {
			t.Fatal(err)
		}
		bin = filepath.Join(root, ".lab", "bin")
	}
	c := CLI{Dir: t.TempDir(), t: t, env: []string{"TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1"}}.WithProvider(bin).With(env...)
	c.Write("versions.tf", `terraform {
  required_providers {
    virtclaim = { source = "virtclaim/virtclaim" }
  }
}
`)
	return c
}

// NewCLISince is NewCLI for what Terraform has since a version. Older ones, and OpenTofu, which has its own versions, skip the test.
func NewCLISince(t testing.TB, version string) CLI {
	t.Helper()
	cli := NewCLI(t)
	first, _, _ := strings.Cut(cli.Must("version"), "\n")
	name, has, _ := strings.Cut(first, " v")
	is, err := goversion.NewVersion(has)
	if err != nil {
		t.Fatal(err)
	}
	if name != "Terraform" || is.LessThan(goversion.Must(goversion.NewVersion(version))) {
		t.Skipf("%s: Terraform has this since %s", first, version)
	}
	return cli
}

// Tapped is a folder for a configuration whose provider, which is in its own file, is connected to host-a through a tap.
func Tapped(t testing.TB, l *lab.Lab, owner string) (CLI, *lab.Tap) {
	t.Helper()
	tap := Tap(t, l.Hosts["host-a"])
	cli := NewCLI(t)
	cli.Write("provider.tf", strings.Replace(Provider(l, owner), l.Hosts["host-a"].URI, tap.URI, 1))
	return cli, tap
}

// TappedHosts is a folder for a configuration whose provider, which is in its own file, is connected to each of the hosts through a tap.
func TappedHosts(t testing.TB, l *lab.Lab, owner string) (CLI, map[string]*lab.Tap) {
	t.Helper()
	taps, configuration := map[string]*lab.Tap{}, Provider(l, owner)
	for name, h := range l.Hosts {
		taps[name] = Tap(t, h)
		configuration = strings.Replace(configuration, h.URI, taps[name].URI, 1)
	}
	cli := NewCLI(t)
	cli.Write("provider.tf", configuration)
	return cli, taps
}

// Tap creates a tap in front of a host for the test.
func Tap(t testing.TB, h *lab.Host) *lab.Tap {
	t.Helper()
	dir, err := os.MkdirTemp("", "tap") // the path of a test's own folder is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	tap, err := lab.NewTap(t.Context(), h, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = tap.Close()
		_ = os.RemoveAll(dir)
	})
	return tap
}

// WithProvider is the same folder with the provider that is in another one.
func (c CLI) WithProvider(folder string) CLI {
	c.t.Helper()
	c.bin = folder
	return c.withOverrides("")
}

func (c CLI) withOverrides(more string) CLI {
	c.t.Helper()
	rc := filepath.Join(c.t.TempDir(), "terraformrc")
	text := `provider_installation {
  dev_overrides {
    "virtclaim/virtclaim" = "` + c.bin + `"
    ` + more + `
  }
  direct {}
}
`
	if err := os.WriteFile(rc, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return c.With("TF_CLI_CONFIG_FILE=" + rc)
}

// WithStandIn is the same folder where providers that the state names, by their source addresses, are this one under another name:
// Terraform starts each such provider, but needs its resources only if some remain.
func (c CLI) WithStandIn(sources ...string) CLI {
	c.t.Helper()
	overrides := ""
	for _, source := range sources {
		folder := c.t.TempDir()
		if err := os.Symlink(filepath.Join(c.bin, "terraform-provider-virtclaim"),
			filepath.Join(folder, "terraform-provider-"+filepath.Base(source))); err != nil {
			c.t.Fatal(err)
		}
		overrides += fmt.Sprintf("%q = %q\n", source, folder)
	}
	return c.withOverrides(overrides)
}

// With is the same folder with more environment.
func (c CLI) With(env ...string) CLI {
	c.env = append(append([]string{}, c.env...), env...)
	return c
}

// Write writes a file of the configuration.
func (c CLI) Write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// Replace replaces a part of a file, which must exist.
func (c CLI) Replace(name, before, after string) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Dir, name))
	if err != nil || !strings.Contains(string(text), before) {
		c.t.Fatalf("%q is not in %s: %v", before, name, err)
	}
	c.Write(name, strings.ReplaceAll(string(text), before, after))
}

// Start runs a command in the background; output returns what it has printed so far.
func (c CLI) Start(args ...string) (cmd *exec.Cmd, output func() string) {
	c.t.Helper()
	printed := &LockedBuffer{}
	cmd = c.command(args...)
	cmd.Stdout, cmd.Stderr = printed, printed
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	return cmd, printed.String
}

// LockedBuffer is a buffer that can be read while it is written to.
type LockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write implements io.Writer.
func (b *LockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

// String returns what was written so far.
func (b *LockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// Run runs a command and returns its output.
func (c CLI) Run(args ...string) (string, error) {
	out, err := c.command(args...).CombinedOutput()
	return string(out), err
}

func (c CLI) command(args ...string) *exec.Cmd {
	program := os.Getenv("TF_ACC_TERRAFORM_PATH")
	if program == "" {
		program = "terraform"
	}
	cmd := exec.CommandContext(c.t.Context(), program, args...)
	cmd.Dir, cmd.Env = c.Dir, append(os.Environ(), c.env...)
	return cmd
}

// Must is Run for a command that has to succeed.
func (c CLI) Must(args ...string) string {
	c.t.Helper()
	out, err := c.Run(args...)
	if err != nil {
		c.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// DestroyAll destroys what a generated configuration has. Its volumes are literals, which tell Terraform no order: a master may be tried
// before its overlays, and is refused until they are gone.
func (c CLI) DestroyAll() {
	c.t.Helper()
	for range 2 {
		if out, err := c.Run("destroy", "-auto-approve", "-no-color"); err != nil && !strings.Contains(out, "overlays of it") {
			c.t.Errorf("%v\n%s", err, out)
		}
	}
	c.Must("destroy", "-auto-approve", "-no-color")
}

// ExpectErrors fails the test unless each of these resources, by name, has an error that matches, and no other has one.
func ExpectErrors(t *testing.T, found map[string]string, want map[string]*regexp.Regexp) {
	t.Helper()
	for name, why := range want {
		if !why.MatchString(found[name]) {
			t.Errorf("%s: want %s, got: %q", name, why, found[name])
		}
	}
	for name, text := range found {
		if want[name] == nil {
			t.Errorf("an error at %q, which should have none: %s", name, text)
		}
	}
}

// PlanErrors are the errors of a plan, by the last part of the address that they are at: summary, source and detail.
func (c CLI) PlanErrors() map[string]string {
	c.t.Helper()
	out, err := c.Run("plan", "-json")
	if err == nil {
		c.t.Fatalf("a plan without errors:\n%s", out)
	}
	found := map[string]string{}
	for line := range strings.Lines(out) {
		var message struct {
			Type       string `json:"type"`
			Diagnostic struct {
				Severity, Summary, Detail, Address string
				Snippet                            struct{ Code string }
			} `json:"diagnostic"`
		}
		if err := json.Unmarshal([]byte(line), &message); err != nil || message.Type != "diagnostic" {
			continue
		}
		if d := message.Diagnostic; d.Severity == "error" {
			found[d.Address[strings.LastIndex(d.Address, ".")+1:]] += strings.Join([]string{d.Summary, d.Snippet.Code, d.Detail, ""}, "\n")
		}
	}
	return found
}
