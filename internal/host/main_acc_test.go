//go:build acc

package host_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// registry returns the lab's hosts as a provider configures them.
func registry(t testing.TB, l *lab.Lab) *host.Registry {
	t.Helper()
	configs := map[string]host.Config{}
	for name, h := range l.Hosts {
		configs[name] = host.Config{URI: h.URI}
	}
	f := host.NewRegistry(configs)
	t.Cleanup(f.Close)
	return f
}

// hostA returns host-a, as virtclaim's Host and as the lab's.
func hostA(t testing.TB, l *lab.Lab) (*host.Host, *lab.Host) {
	t.Helper()
	h, err := registry(t, l).Host("host-a")
	if err != nil {
		t.Fatal(err)
	}
	return h, l.Hosts["host-a"]
}

// define creates a domain for the test. A guest with a console boots the lab's image; one without has nothing to boot, and ignores its
// power button.
func define(t *testing.T, l *lab.Lab, h *host.Host, name string, console *acctest.Console) string {
	t.Helper()
	boot, serial := "", ""
	if console != nil {
		boot = fmt.Sprintf("<kernel>%s</kernel><initrd>%s</initrd><cmdline>%s</cmdline>", l.Guest.Kernel, l.Guest.Initrd, l.Guest.Parameters)
		serial = fmt.Sprintf("<serial type='file'><source path='%s'/></serial>", console.Path())
	}
	id, err := h.Define(t.Context(), fmt.Sprintf(`<domain type='qemu'>
  <name>%s</name>
  <memory unit='MiB'>128</memory>
  <os><type arch='x86_64' machine='q35'>hvm</type>%s</os>
  <features><acpi/></features>
  <devices>%s</devices>
</domain>`, name, boot, serial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = l.Hosts["host-a"].Virsh(context.Background(), "destroy", id) // it may be off
		if out, err := l.Hosts["host-a"].Virsh(context.Background(), "undefine", id); err != nil {
			t.Error(err, out)
		}
	})
	return id
}

// run is define for a domain that runs.
func run(t *testing.T, l *lab.Lab, h *host.Host, name string) string {
	t.Helper()
	id := define(t, l, h, name, nil)
	if err := h.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id
}

// soon returns a context that ends after d, or with the test.
func soon(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// console returns a log that the lab's user may read.
func console(t *testing.T) *acctest.Console {
	t.Helper()
	c := acctest.NewConsole(t)
	return &c
}

func virsh(t *testing.T, h *lab.Host, args ...string) string {
	t.Helper()
	out, err := h.Virsh(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// missing returns a UUID that no object has.
func missing() string { return uuid.NewString() }
