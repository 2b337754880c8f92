//go:build acc

package virtualmachine_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// networked is a host with networks, and one guest on it.
type networked struct {
	*lab.Host
	lab     *lab.Lab
	console acctest.Console
}

func newNetworked(t *testing.T) networked {
	t.Helper()
	l := acctest.Lab(t)
	return networked{acctest.Must(l.NetworkedHost(t.Context()))(t), l, acctest.NewConsole(t)}
}

// config is a machine with those interfaces, in HCL: key = { … }.
func (w networked) config(m machine, interfaces ...string) string {
	m.host, m.log = w.Name, w.console.Path()
	if m.cmdline == "" {
		m.cmdline = "virtclaim.nics=1 virtclaim.dhcp=eth0"
	}
	m.more += "\n  interfaces = {\n    " + strings.Join(interfaces, "\n    ") + "\n  }"
	return fmt.Sprintf("provider \"virtclaim\" {\n  owner = \"wired\"\n  hosts = { %s = { uri = %q } }\n}\n", w.Name, w.URI) + m.hcl(w.lab)
}

// guest has the guest run a command and checks that its answer has those parts. The guest must not have been restarted.
func (w networked) guest(t *testing.T, command string, parts ...string) resource.TestCheckFunc {
	t.Helper()
	return func(*terraform.State) error {
		w.console.Await(t, "READY")
		acctest.Contains(t, acctest.Must(w.Shell(context.Background(), "web", command))(t), parts...)
		if boots := w.console.Boots(); boots != 1 {
			return fmt.Errorf("the guest has booted %d times", boots)
		}
		return nil
	}
}

// device is the element of the machine's interface with that address in its persistent definition.
func (w networked) device(mac string) (string, error) {
	xml, err := w.Virsh(context.Background(), "dumpxml", "--inactive", "web")
	if err != nil {
		return "", err
	}
	for _, element := range regexp.MustCompile(`(?s)<interface .*?</interface>`).FindAllString(xml, -1) {
		if strings.Contains(element, mac) {
			return element, nil
		}
	}
	return "", fmt.Errorf("there is no interface with the address %s in %s", mac, xml)
}

// address matches the addresses that a network's DHCP server assigns.
func address(network string) *regexp.Regexp {
	return regexp.MustCompile("^" + regexp.QuoteMeta(lab.Networks[network]) + `\.1[0-9][0-9]$`)
}

// One running guest sees all changes of its interfaces, and an unchanged interface keeps its address and its place on the bus.
func TestAccVirtualMachine_InterfacesChangeLive(t *testing.T) {
	for _, machineType := range []string{"pc", "q35"} {
		t.Run(machineType, func(t *testing.T) { testInterfacesChange(t, machineType) })
	}
}

func testInterfacesChange(t *testing.T, machineType string) {
	t.Helper()
	w := newNetworked(t)
	config := func(interfaces ...string) string { return w.config(machine{machineType: machineType}, interfaces...) }
	virsh := func(args ...string) {
		if out, err := w.Virsh(t.Context(), args...); err != nil {
			t.Fatal(err, out)
		}
	}
	mac, place := "", ""
	place1 := regexp.MustCompile(`<address type='pci'.*/>`)
	// stays checks that lan has the MAC address and the place on the bus that it had at first.
	stays := func(s *terraform.State) error {
		now := s.RootModule().Resources[web].Primary.Attributes["interfaces.lan.mac"]
		element, err := w.device(now)
		if mac == "" {
			mac, place = now, place1.FindString(element)
		}
		if err != nil || !strings.HasPrefix(now, "52:54:00:") || now != mac || place1.FindString(element) != place {
			return fmt.Errorf("lan was %s at %s, is %s: %s: %w", mac, place, now, element, err)
		}
		return nil
	}
	update := planned(plancheck.ResourceActionUpdate)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: w.config(machine{machineType: machineType, more: `wait_for = { addresses = ["lan"] }`}, `lan = { network = "red" }`),
				Check: resource.ComposeTestCheckFunc(stays, resource.TestMatchResourceAttr(web, "addresses.lan.0", address("red")), func(s *terraform.State) error {
					return w.guest(t, "report_nic eth0", "mac="+mac+" link=1 address="+lab.Networks["red"])(s)
				}),
			},
			{ResourceName: web, ImportState: true, ImportStateId: w.Name + "/web", ImportStateVerify: true, ImportStateVerifyIgnore: []string{"wait_for"}},
			{
				Config:           config(`a = { user = true }`, `lan = { network = "blue" }`),
				ConfigPlanChecks: update,
				Check: resource.ComposeTestCheckFunc(stays, func(s *terraform.State) error {
					return w.guest(t, "wait_for nics 2; dhcp eth0; dhcp eth1", "eth0 mac="+mac+" link=1 address="+lab.Networks["blue"], "link=1 address=10.0.2.15")(s)
				}),
			},
			{
				Config:           config(`lan = { bridge = "` + lab.Bridge + `", link = "down" }`),
				ConfigPlanChecks: update,
				Check: resource.ComposeTestCheckFunc(stays,
					w.guest(t, "report_nic eth0; report_nic eth1", "link=0", "FAILED eth1 no such network interface")),
			},
			{
				// Manual changes of the running machine are reverted.
				PreConfig: func() {
					virsh("attach-interface", "web", "bridge", lab.Bridge, "--model", "virtio", "--live")
				},
				Config:           config(`lan = { network = "red" }`),
				ConfigPlanChecks: update,
				Check: resource.ComposeTestCheckFunc(stays,
					w.guest(t, "dhcp eth0; report_nic eth1", "link=1 address="+lab.Networks["red"], "FAILED eth1 no such network interface")),
			},
			{
				// A change that fails changes nothing.
				Config:      config(`lan = { network = "red" }`, `more = { network = "nowhere" }`),
				ExpectError: message("interface more could not be plugged into the running machine", "nowhere"),
			},
			{Config: config(`lan = { network = "red" }`), PlanOnly: true},
			{
				Config:           config(`lan = { network = "red", mac = "52:54:00:AB:CD:EF", model = "e1000", mtu = 1400, boot_order = 1 }`),
				ConfigPlanChecks: update,
				Check: func(s *terraform.State) error {
					element, err := w.device("52:54:00:ab:cd:ef")
					acctest.Contains(t, element, "<mtu size='1400'/>", "<boot order='1'/>", "ua-net-lan")
					return errors.Join(err, w.guest(t, "wait_for nics 1; report_nic $(nics)", "mac=52:54:00:ab:cd:ef")(s))
				},
			},
			{Config: config(`lan = { network = "red", mac = "52:54:00:ab:cd:EF", model = "e1000", mtu = 1400, boot_order = 1 }`), PlanOnly: true},
		},
	})
}

// The agent reports addresses that no DHCP server has assigned, and wait_for waits for them.
func TestAccVirtualMachine_AgentAddresses(t *testing.T) {
	w := newNetworked(t)
	config := func(more string, others ...string) string {
		script := base64.StdEncoding.EncodeToString([]byte("ip address add 203.0.113.5/24 dev eth0"))
		m := machine{machineType: "q35", cmdline: "virtclaim.nics=1 virtclaim.agent=vport0p1 virtclaim.run=" + script, more: more}
		lan := `lan = { bridge = "` + lab.Bridge + `", model = "e1000" }`
		return w.config(m, append(others, lan)...) + "\noutput \"lan\" { value = " + web + ".addresses[\"lan\"] }\n"
	}
	tells := resource.TestCheckResourceAttr(web, "addresses.lan.0", "203.0.113.5")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config("guest_agent = true\n" + `wait_for = { agent = true, addresses = ["lan"] }`), Check: tells},
			{ResourceName: web, ImportState: true, ImportStateId: w.Name + "/web", ImportStateVerify: true, ImportStateVerifyIgnore: []string{"wait_for"}},
			{Config: config(`wait_for = { agent = true }`), PlanOnly: true, ExpectError: message("No agent to wait for", "Set guest_agent = true")},
			{
				// The guest keeps the port until its next start, and so do the users of its address.
				Config: config("", `more = { user = true }`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(web, plancheck.ResourceActionUpdate),
					plancheck.ExpectKnownOutputValue("lan", knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("203.0.113.5")})),
					plancheck.ExpectUnknownValue(web, tfjsonpath.New("addresses").AtMapKey("more")),
				}},
				Check: resource.ComposeTestCheckFunc(tells, resource.TestCheckResourceAttr(web, "addresses.%", "2"),
					w.guest(t, "report_nic eth0", "address=203.0.113.5/24")),
			},
		},
	})
}

// A running machine gets as many devices as it has free ports, as libvirt counts them, and more of them with a restart.
func TestAccVirtualMachine_TooFewPorts(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	write := func(interfaces int, restart bool) {
		cli.Write("main.tf", acctest.Provider(l, "ports")+fmt.Sprintf(`
resource "virtclaim_virtual_machine" "web" {
  host          = "host-a"
  name          = "web"
  memory        = "32Mi"
  machine       = { type = "q35", domain_type = "qemu", hotplug_ports = 6 }
  interfaces    = { for n in range(%d) : "nic${n}" => { user = true } }
  allow_restart = %t
  force_stop    = true
}
`, interfaces, restart))
	}
	write(0, false)
	cli.Must("apply", "-auto-approve", "-no-color")
	before := running(t, l.Hosts["host-a"])
	write(12, false)
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	found := message("too few free PCI Express ports: the running machine has ").FindStringIndex(out)
	var free int
	if err == nil || found == nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if _, err := fmt.Sscanf(out[found[1]:], "%d", &free); err != nil || free == 0 {
		t.Fatalf("%v:\n%s", err, out)
	}
	write(free, false)
	cli.Must("apply", "-auto-approve", "-no-color")
	if now := running(t, l.Hosts["host-a"]); now != before {
		t.Errorf("it was restarted: it ran as %s, and runs as %s", before, now)
	}
	suspended(t, l.Hosts["host-a"]) // its firmware would ignore its power button
	write(12, true)
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes")
	if now := running(t, l.Hosts["host-a"]); now == before {
		t.Error("it was not restarted")
	}
	suspended(t, l.Hosts["host-a"])
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// The DHCP server remembers the lease of the run before, which says nothing of a guest that still boots.
func TestAccVirtualMachine_WaitForRenewedLease(t *testing.T) {
	w := newNetworked(t)
	config := func(running bool) string {
		return w.config(machine{more: fmt.Sprintf("running = %t\n  wait_for = { addresses = [\"lan\"] }", running)}, `lan = { network = "red" }`)
	}
	lease := func() string {
		mac := regexp.MustCompile(`52:54:00:\S+`).FindString(acctest.Must(w.Virsh(t.Context(), "domiflist", "web"))(t))
		return regexp.MustCompile(`(?m)^.*` + mac + `.*$`).FindString(acctest.Must(w.Virsh(t.Context(), "net-dhcp-leases", "red"))(t))
	}
	before := ""
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config(true)},
			{Config: config(false)},
			{
				PreConfig: func() { before = lease() },
				Config:    config(true),
				Check: resource.ComposeTestCheckFunc(resource.TestMatchResourceAttr(web, "addresses.lan.0", address("red")), func(*terraform.State) error {
					if now := lease(); before == "" || now == before {
						return fmt.Errorf("the lease was %q, and is %q when the apply ends", before, now)
					}
					return nil
				}),
			},
		},
	})
}

// The plan warns of networks that a resource of the apply may make or start; the apply says how to start one.
func TestAccVirtualMachine_PlanWarnsOfNetworks(t *testing.T) {
	w := newNetworked(t)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", w.config(machine{}, `lan = { network = "red" }`, `other = { network = "nowhere" }`))
	virsh := func(args ...string) { acctest.Must(w.Virsh(t.Context(), args...))(t) }
	virsh("net-destroy", "red")
	plan := cli.Must("plan", "-no-color")
	cli.Write("main.tf", w.config(machine{}, `lan = { network = "red" }`))
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	virsh("net-start", "red")
	if !message(`The network "red" of host `, "To start it: virsh net-start 'red'").MatchString(plan) || !message("Host ", `has no network "nowhere"`).MatchString(plan) {
		t.Errorf("the plan does not warn:\n%s", plan)
	}
	if err == nil || !message("could not be started", "Start it: virsh net-start 'red'").MatchString(out) {
		t.Errorf("the apply: %v:\n%s", err, out)
	}
	if plan := cli.Must("plan", "-no-color"); strings.Contains(plan, "not active") {
		t.Errorf("a plan for an active network warns:\n%s", plan)
	}
}
