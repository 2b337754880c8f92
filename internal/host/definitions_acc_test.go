//go:build acc

package host_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// dumpXML is the call for a definition of a domain.
const dumpXML lab.Call = 14

// titled are n domains of the test, more than are read in each list, and a function that changes the title of one of them.
func titled(t *testing.T, l *lab.Lab, n int) (set func(h *host.Host, i int, title string)) {
	t.Helper()
	ids := make([]string, n)
	set = func(h *host.Host, i int, title string) {
		if _, err := h.Define(t.Context(), fmt.Sprintf(`<domain type='qemu'><name>listed-%d</name><uuid>%s</uuid><title>%s</title>
<memory unit='MiB'>64</memory><os><type arch='x86_64' machine='q35'>hvm</type></os><devices/></domain>`, i, ids[i], title)); err != nil {
			t.Error(err)
		}
	}
	h, _ := hostA(t, l)
	for i := range ids {
		ids[i] = uuid.NewString()
		set(h, i, "first")
		acctest.Undo(t, func(ctx context.Context) error { return h.Undefine(ctx, ids[i]) })
	}
	return set
}

// shows reports whether a host lists a domain with a text in its definitions.
func shows(t *testing.T, h *host.Host, name, text string) bool {
	t.Helper()
	all, err := h.Domains(t.Context())
	if err != nil {
		t.Error(err)
	}
	for _, d := range all {
		if d.Name == name {
			return strings.Contains(d.Stored+d.Live, text)
		}
	}
	t.Errorf("domain %s is not listed", name)
	return false
}

// A list asks only for the definitions that have changed, and shows what another process has changed as soon as that has the reply.
func TestAccHost_ListKeepsDefinitions(t *testing.T) {
	const domains, rounds = 12, 100
	l := acctest.Lab(t)
	set := titled(t, l, domains)
	tap, err := lab.NewTap(t.Context(), l.Hosts["host-a"], t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	acctest.Undo(t, func(context.Context) error { return tap.Close() })
	all := host.NewRegistry(map[string]host.Config{"a": {URI: tap.URI}})
	t.Cleanup(all.Close)
	reader, err := all.Host("a")
	if err != nil {
		t.Fatal(err)
	}
	writer, _ := hostA(t, l)
	shows(t, reader, "listed-0", "first")
	before := tap.Calls(dumpXML)
	for range 10 {
		shows(t, reader, "listed-0", "first")
	}
	if n := tap.Calls(dumpXML) - before; n > 0 {
		t.Errorf("%d definitions were read that had not changed", n)
	}
	for i := range rounds {
		title := fmt.Sprintf("round-%d", i)
		set(writer, i%domains, title)
		if !shows(t, reader, fmt.Sprintf("listed-%d", i%domains), title) {
			t.Fatalf("%s is not shown", title)
		}
	}
	if n := tap.Calls(dumpXML) - before; n < rounds || n > 2*rounds {
		t.Errorf("%d definitions were read for %d changes", n, rounds)
	}
}

// Of two processes that define what they are about to use and then list the domains, at least one sees the other.
func TestAccHost_OneOfTwoListsShowsTheOther(t *testing.T) {
	const domains, rounds = 12, 100
	l := acctest.Lab(t)
	set := titled(t, l, domains)
	hosts := [2]*host.Host{}
	for i := range hosts {
		hosts[i], _ = hostA(t, l)
		shows(t, hosts[i], "listed-0", "first")
	}
	both, missed := 0, 0
	for i := range rounds {
		title := fmt.Sprintf("round-%d", i)
		var seen [2]bool
		var group sync.WaitGroup
		for n, h := range hosts {
			group.Go(func() {
				set(h, n, title)
				seen[n] = shows(t, h, fmt.Sprintf("listed-%d", 1-n), title)
			})
		}
		group.Wait()
		switch {
		case seen[0] && seen[1]:
			both++
		case !seen[0] && !seen[1]:
			missed++
		}
	}
	if t.Logf("both saw each other in %d of %d rounds", both, rounds); missed > 0 {
		t.Errorf("in %d rounds no process saw the other", missed)
	}
}

// What is attached to a running domain is shown as soon as that has the reply.
func TestAccHost_ListShowsAttachedDisks(t *testing.T) {
	const rounds = 10
	l := acctest.Lab(t)
	titled(t, l, 12)
	reader, at := hostA(t, l)
	writer, _ := hostA(t, l)
	id := run(t, l, writer, "attached")
	dir := t.TempDir()
	for i := range rounds {
		name := fmt.Sprintf("disk-%d", i)
		file := filepath.Join(filepath.Dir(acctest.ImageIn(t, dir, name)), name)
		xml := fmt.Sprintf("<disk type='file' device='disk'><source file='%s'/><target dev='sda' bus='usb'/></disk>", file)
		if err := writer.Attach(t.Context(), id, xml); err != nil {
			t.Fatal(err)
		}
		if !shows(t, reader, "attached", file) {
			t.Fatalf("round %d: the attached disk is not shown", i)
		}
		virsh(t, at, "detach-disk", id, "sda", "--live")
	}
}
