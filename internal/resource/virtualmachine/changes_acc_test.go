//go:build acc

package virtualmachine_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// Each row of the table is a running machine, whose attribute is set, changed and removed again.
func TestAccVirtualMachine_TableOfChanges(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	write := func(body func(change) string) {
		text := acctest.Provider(l, "changes")
		for n, c := range changes {
			if c.proof == nil {
				text += row(l, n, c.boots, body(c))
			}
		}
		cli.Write("main.tf", text)
	}
	apply := func(what string) map[string]state {
		t.Helper()
		cli.Must("apply", "-auto-approve", "-no-color", "-parallelism=30")
		if out, err := cli.Run("plan", "-detailed-exitcode", "-no-color"); err != nil {
			t.Errorf("a plan after the attributes were %s is not empty: %v\n%s", what, err, out)
		}
		return states(t, l, cli)
	}
	defer func() { cli.Must("destroy", "-auto-approve", "-no-color", "-parallelism=30") }()
	write(func(c change) string { return c.first })
	first := apply("set")
	write(func(c change) string { return c.second })
	second := apply("changed")
	write(func(c change) string {
		if c.removal == never {
			return c.second
		}
		return c.without
	})
	third := apply("taken out")
	for n, c := range changes {
		name := rowName(n)
		if c.proof != nil {
			continue
		}
		if got := first[name].became(t, second[name]); got != c.change {
			t.Errorf("a change of %s is: %s; the table says: %s\n%s", c.attribute, got, c.change, second[name])
		}
		if c.removal == never {
			continue
		}
		if got := second[name].became(t, third[name]); got != c.removal {
			t.Errorf("the removal of %s is: %s; the table says: %s\n%s", c.attribute, got, c.removal, third[name])
		}
	}
}

func rowName(n int) string { return fmt.Sprintf("row-%d", n) }

// row is a small machine with the given body. If its guest has to answer, it boots the lab's guest; the others have nothing to boot, which
// is cheaper.
func row(l *lab.Lab, n int, boots bool, body string) string {
	name := rowName(n)
	disks := ""
	for _, disk := range []string{"spare", "other"} {
		if strings.Contains(body, disk) {
			disks += fmt.Sprintf(`
resource "virtclaim_disk" "%[1]s-%[2]s" {
  host       = "host-a"
  name       = "%[1]s-%[2]s"
  usage_type = "fast"
  size       = "1Mi"
  format     = "raw"
}
`, name, disk)
			body = strings.ReplaceAll(body, disk, fmt.Sprintf("virtclaim_disk.%s-%s.volume", name, disk))
		}
	}
	rest := map[string]string{
		"host": `"host-a"`, "name": fmt.Sprintf("%q", name), "memory": `"32Mi"`, "machine": `{ type = "q35", domain_type = "qemu" }`,
		"force_stop": "true", "timeouts": `{ delete = "1m" }`,
	}
	if boots {
		rest["memory"], rest["timeouts"] = `"128Mi"`, "null"
		rest["boot"] = `{ kernel = "KERNEL", initrd = "INITRD", cmdline = "PARAMETERS" }`
	}
	for attribute, value := range rest {
		if !regexp.MustCompile(`(?m)^\s*` + attribute + `\s*=`).MatchString(body) {
			body += fmt.Sprintf("\n  %s = %s", attribute, value)
		}
	}
	body = strings.NewReplacer("KERNEL", l.Guest.Kernel, "INITRD", l.Guest.Initrd, "PARAMETERS", l.Guest.Parameters).Replace(body)
	return disks + fmt.Sprintf("resource \"virtclaim_virtual_machine\" %q {\n  %s\n}\n", name, body)
}

// state is a host's state of a machine.
type state struct {
	uuid, live, stored string
	autostart          bool
}

func (s state) String() string { return s.live + "\n" + s.stored }

var (
	metadata = regexp.MustCompile(`(?s)<metadata>.*</metadata>`)
	domainID = regexp.MustCompile(`<domain [^>]*id='(\d+)'`)
)

// became is the effect of a change on a running machine.
func (s state) became(t *testing.T, after state) effect {
	t.Helper()
	guest := func(s state) string { return metadata.ReplaceAllString(s.live, "") }
	start := func(s state) string { return fmt.Sprint(domainID.FindStringSubmatch(s.live)) }
	switch {
	case s.live != "" && after.live == "":
		return stopped
	case s.live == "" && after.live != "":
		return started
	}
	want, err := domainxml.Parse(after.stored)
	if err != nil {
		t.Fatal(err)
	}
	running, err := domainxml.Read(after.live)
	if err != nil {
		t.Fatal(err)
	}
	pending, err := running.Pending(want)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case s.uuid != after.uuid:
		return replaced
	case start(s) != start(after):
		return "a restart"
	case len(pending) > 0:
		return atStart
	case guest(s) != guest(after), s.autostart != after.autostart:
		return live
	case metadata.ReplaceAllString(s.stored, "") != metadata.ReplaceAllString(after.stored, ""):
		return "only in the stored definition, and not said to be pending"
	}
	return ours
}

// states are the states of all machines of a configuration, by their names in it.
func states(t *testing.T, l *lab.Lab, cli acctest.CLI) map[string]state {
	t.Helper()
	var shown struct {
		Values struct {
			RootModule struct {
				Resources []struct {
					Type, Name string
					Values     struct{ UUID, Host string }
				}
			} `json:"root_module"`
		}
	}
	if err := json.Unmarshal([]byte(cli.Must("show", "-json")), &shown); err != nil {
		t.Fatal(err)
	}
	domains, autostart := map[string]host.Domain{}, map[string]string{}
	configs := map[string]host.Config{}
	for key, h := range l.Hosts {
		configs[key] = host.Config{URI: h.URI}
	}
	registry := host.NewRegistry(configs)
	defer registry.Close()
	for _, key := range registry.Keys() {
		h, err := registry.Host(key)
		if err != nil {
			t.Fatal(err)
		}
		all, err := h.Domains(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range all {
			domains[key+d.UUID] = d
		}
		if autostart[key], err = l.Hosts[key].Virsh(t.Context(), "list", "--all", "--autostart", "--uuid"); err != nil {
			t.Fatal(err)
		}
	}
	found := map[string]state{}
	for _, r := range shown.Values.RootModule.Resources {
		if r.Type == "virtclaim_virtual_machine" {
			d := domains[r.Values.Host+r.Values.UUID]
			found[r.Name] = state{d.UUID, d.Live, d.Stored, strings.Contains(autostart[r.Values.Host], d.UUID)}
		}
	}
	return found
}
