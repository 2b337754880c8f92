//go:build acc

package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

const theHost = "data.virtclaim_host.host"

func TestAccHost_MatchesVirsh(t *testing.T) {
	l := acctest.Lab(t)
	h := l.Hosts["host-a"]
	node, pool, version := virsh(t, h, "nodeinfo"), virsh(t, h, "pool-info", "--bytes", "ssd"), virsh(t, h, "version")
	cpu := baseline(t, h)
	memory := acctest.Must(strconv.Atoi(strings.TrimSuffix(node["Memory size"], " KiB")))(t) << 10
	is := func(key, value string) resource.TestCheckFunc {
		return resource.TestCheckResourceAttr(theHost, key, value)
	}
	none := func(key string) resource.TestCheckFunc { return resource.TestCheckNoResourceAttr(theHost, key) }
	looking := func(host string) string {
		return fmt.Sprintf("\ndata \"virtclaim_host\" \"host\" {\n  host = %q\n}\n", host)
	}
	here := acctest.Provider(l, "looking")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: here + looking("host-a"),
				Check: resource.ComposeTestCheckFunc(
					hasDevices(t, h, "pci_devices", "pci"), hasDevices(t, h, "usb_devices", "usb_device"), hasDevices(t, h, "mediated_devices", "mdev"),
					is("hostname", "host-a"), is("uuid", hostUUID(t, h)), is("architecture", node["CPU model"]),
					is("cpu.model", cpu.Model.Value), is("cpu.vendor", cpu.Vendor), hasFeatures(cpu),
					is("cpus", node["CPU(s)"]), is("memory", strconv.Itoa(memory)),
					is("libvirt_version", strings.TrimPrefix(version["Using library"], "libvirt ")),
					is("hypervisor_version", strings.TrimPrefix(version["Running hypervisor"], "QEMU ")),
					resource.TestCheckTypeSetElemAttr(theHost, "guests.x86_64.domain_types.*", "qemu"),
					resource.TestCheckTypeSetElemAttr(theHost, "guests.x86_64.machines.*", "q35"),
					is("usage_types.%", "2"), is("usage_types.slow.pool", "rust"),
					is("usage_types.fast.pool", "ssd"), is("usage_types.fast.type", "dir"), is("usage_types.fast.path", h.Pools+"/ssd"),
					is("usage_types.fast.active", "true"), is("usage_types.fast.capacity", pool["Capacity"]),
					is("usage_types.fast.available", pool["Available"]), is("usage_types.fast.allocated", pool["Allocation"]),
				),
			},
			{
				Config: strings.ReplaceAll(here, `fast = "ssd"`, `fast = "sdd"`) + looking("host-a"),
				Check: resource.ComposeTestCheckFunc(
					is("usage_types.fast.pool", "sdd"), is("usage_types.fast.active", "false"), none("usage_types.fast.capacity"), none("usage_types.fast.type"),
				),
			},
			{
				Config:      here + looking("host-z"),
				ExpectError: regexp.MustCompile(`No such host(?s:.*)host-a, host-b`),
			},
		},
	})
}

// virsh is the output of virsh, by the text before the colon.
func virsh(t *testing.T, h *lab.Host, args ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(acctest.Must(h.Virsh(t.Context(), args...))(t)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			found[name] = strings.TrimSpace(value)
		}
	}
	return found
}

func hostUUID(t *testing.T, h *lab.Host) string {
	t.Helper()
	text := acctest.Must(h.Virsh(t.Context(), "capabilities"))(t)
	_, text, _ = strings.Cut(text, "<uuid>")
	id, _, _ := strings.Cut(text, "</uuid>")
	return id
}

// baseline is the processor that libvirt says guests can have, with all features.
func baseline(t *testing.T, h *lab.Host) (cpu libvirtxml.DomainCPU) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "capabilities.xml")
	capabilities := acctest.Must(h.Virsh(t.Context(), "domcapabilities"))(t)
	if err := os.WriteFile(file, []byte(capabilities), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cpu.Unmarshal(acctest.Must(h.Virsh(t.Context(), "hypervisor-cpu-baseline", "--features", file))(t)); err != nil {
		t.Fatal(err)
	}
	return cpu
}

// hasFeatures compares the features with those that a processor requires, of which there are some.
func hasFeatures(cpu libvirtxml.DomainCPU) resource.TestCheckFunc {
	var all []resource.TestCheckFunc
	for _, f := range cpu.Features {
		if f.Policy == "require" {
			all = append(all, resource.TestCheckTypeSetElemAttr(theHost, "cpu.features.*", f.Name))
		}
	}
	all = append(all, resource.TestCheckTypeSetElemAttr(theHost, "cpu.features.*", "sse2"),
		resource.TestCheckResourceAttr(theHost, "cpu.features.#", strconv.Itoa(len(all))))
	return resource.ComposeTestCheckFunc(all...)
}

// hasDevices compares the number of devices of a kind with virsh's, and each PCI device with its description.
func hasDevices(t *testing.T, h *lab.Host, attribute, kind string) resource.TestCheckFunc {
	t.Helper()
	names := strings.Fields(acctest.Must(h.Virsh(t.Context(), "nodedev-list", "--cap", kind))(t))
	all := []resource.TestCheckFunc{resource.TestCheckResourceAttr(theHost, attribute+".%", strconv.Itoa(len(names)))}
	if kind != "pci" {
		return resource.ComposeTestCheckFunc(all...)
	}
	if len(names) == 0 {
		t.Fatal("the host lists no PCI device")
	}
	for _, name := range names {
		var d libvirtxml.NodeDevice
		if err := d.Unmarshal(acctest.Must(h.Virsh(t.Context(), "nodedev-dumpxml", name))(t)); err != nil {
			t.Fatal(err)
		}
		p := strings.Split(strings.TrimPrefix(name, "pci_"), "_")
		at := attribute + "." + p[0] + ":" + p[1] + ":" + p[2] + "." + p[3] + "."
		all = append(all,
			resource.TestCheckResourceAttr(theHost, at+"vendor_id", strings.TrimPrefix(d.Capability.PCI.Vendor.ID, "0x")),
			resource.TestCheckResourceAttr(theHost, at+"class", strings.TrimPrefix(d.Capability.PCI.Class, "0x")),
			resource.TestMatchResourceAttr(theHost, at+"hostdev_xml", regexp.MustCompile("bus='0x"+p[1]+"' slot='0x"+p[2]+"'")))
		if d.Driver != nil {
			all = append(all, resource.TestCheckResourceAttr(theHost, at+"driver", d.Driver.Name))
		}
	}
	return resource.ComposeTestCheckFunc(all...)
}
