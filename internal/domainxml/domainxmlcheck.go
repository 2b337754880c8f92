package domainxml

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// DomainElements are the elements, by example, that domain_xml takes, with all attributes that they may have; # in a text stands for any
// text, and so does any number. None of them opens storage, a file or a socket of the host, or runs a program. What is not here is refused,
// until it has been reviewed.
const DomainElements = `<genid>#</genid><metadata/>
<blkiotune><weight>1</weight></blkiotune>
<memtune><hard_limit unit=''>1</hard_limit><soft_limit unit=''>1</soft_limit>
  <min_guarantee unit=''>1</min_guarantee>
 <swap_hard_limit unit=''>1</swap_hard_limit></memtune>
<memoryBacking><nosharepages/><locked/><allocation mode='' threads='1'/><discard/></memoryBacking>
<defaultiothread thread_pool_min='1' thread_pool_max='1'/>
<cputune><global_period>1</global_period>
  <global_quota>1</global_quota>
 <emulator_period>1</emulator_period><emulator_quota>1</emulator_quota><iothread_period>1</iothread_period>
 <iothread_quota>1</iothread_quota><iothreadpin iothread='1' cpuset=''/>
 <vcpusched vcpus='' scheduler='' priority='1'/><emulatorsched scheduler='' priority='1'/>
 <iothreadsched iothreads='' scheduler='' priority='1'/>
 <cachetune vcpus='' id=''><cache id='1' level='1' type='' size='1' unit=''/><monitor level='1' vcpus=''/>
  </cachetune>
 <memorytune vcpus=''><node id='1' bandwidth='1'/><monitor vcpus=''/></memorytune></cputune>
<numatune><memory mode='' nodeset='' placement=''/><memnode cellid='1' mode='' nodeset=''/></numatune>
<sysinfo type='smbios'><bios><entry name=''>#</entry></bios><system><entry name=''>#</entry></system>
 <baseBoard><entry name=''>#</entry></baseBoard><chassis><entry name=''>#</entry></chassis>
 <processor><entry name=''>#</entry></processor><memory_device><entry name=''>#</entry></memory_device>
 <oemStrings><entry>#</entry></oemStrings></sysinfo>
<sysinfo type='fwcfg'><entry name=''>#</entry></sysinfo>
<os><bootmenu enable='' timeout=''/><bios useserial='' rebootTimeout='1'/><smbios mode=''/></os>
<features><pae/><hap state=''/>
 <hyperv mode=''><relaxed state=''/><vapic state=''/><spinlocks state='' retries='1'/><vpindex state=''/>
  <runtime state=''/>
  <synic state=''/><stimer state=''><direct state=''/></stimer><reset state=''/><vendor_id state='' value=''/>
  <frequencies state=''/>
  <reenlightenment state=''/><tlbflush state=''><direct state=''/><extended state=''/></tlbflush><ipi state=''/>
  <evmcs state=''/>
  <avic state=''/><emsr_bitmap state=''/><xmm_input state=''/></hyperv>
 <kvm><hidden state=''/><hint-dedicated state=''/><poll-control state=''/><pv-ipi state=''/>
  <dirty-ring state='' size='1'/></kvm>
 <pvspinlock state=''/><pmu state=''/><vmport state=''/><gic version=''/><ioapic driver=''/>
 <hpt resizing=''><maxpagesize unit=''>1</maxpagesize></hpt><htm state=''/><nested-hv state=''/>
  <vmcoreinfo state=''/><msrs unknown=''/>
 <ccf-assist state=''/><cfpc value=''/><sbbc value=''/><ibs value=''/><tcg><tb-cache unit=''>1</tb-cache></tcg>
 <async-teardown enabled=''/><ras state=''/><ps2 state=''/><aia value=''/><virtualization/></features>
<cpu><cache level='1' mode=''/><maxphysaddr mode='' bits='1' limit='1'/>
 <numa><cell id='1' cpus='' memory='1' unit='' memAccess='' discard=''><distances><sibling id='1' value='1'/>
  </distances>
  <cache level='1' associativity='' policy=''><size value='' unit=''/><line value='' unit=''/></cache></cell>
  <interconnects><latency initiator='1' target='1' cache='1' type='' value='1'/>
  <bandwidth initiator='1' target='1' cache='1' type='' value='1' unit=''/></interconnects></numa></cpu>
<pm><suspend-to-mem enabled=''/><suspend-to-disk enabled=''/></pm>
<perf><event name='' enabled=''/></perf>
<keywrap><cipher name='' state=''/></keywrap>
<launchSecurity type='sev' kernelHashes=''><cbitpos>1</cbitpos><reducedPhysBits>1</reducedPhysBits>
  <policy>1</policy></launchSecurity>`

// attributed are the attributes that have what domain_xml does not take, by the names of the elements; an attribute has an @.
var attributed = map[string]string{
	"name": "name", "title": "title", "description": "description", "memory": "memory", "currentMemory": "memory",
	"maxMemory": "max_memory", "vcpu": "cpu.vcpus", "vcpus": "cpu.vcpus", "iothreads": "disks.<key>.iothread",
	"iothreadids": "disks.<key>.iothread", "cputune/vcpupin": "cpu.pin", "cputune/emulatorpin": "cpu.emulator_pin",
	"cputune/shares": "cpu.shares", "cputune/period": "cpu.period", "cputune/quota": "cpu.quota",
	"memoryBacking/hugepages": "memory_backing.huge_pages",
	"memoryBacking/access":    "memory_backing.shared", "memoryBacking/source": "memory_backing.shared", "os/type": "machine",
	"os/@firmware": "firmware", "os/firmware": "firmware", "os/loader": "firmware", "os/nvram": "firmware", "os/kernel": "boot.kernel",
	"os/initrd": "boot.initrd", "os/cmdline": "boot.cmdline", "os/boot": "disks.<key>.boot_order", "features/smm": "firmware.secure_boot",
	"cpu/@mode": "cpu.mode", "cpu/model": "cpu.model", "cpu/topology": "cpu.topology", "cpu/feature": "cpu.features", "clock": "clock",
	"sysinfo/entry/@file": "fw_cfg", "on_reboot": "on_reboot", "on_crash": "on_crash",
	"devices": "disks, interfaces and so on, or devices_xml",
}

// mostXML is the greatest length of domain_xml, in bytes. The definition has it up to three times, and libvirt takes 4 MiB.
const mostXML = 1 << 16

// ownEntries are entries of the fw_cfg device that no user gives.
const ownEntries = "opt/io.virtclaim/"

// example is DomainElements.
var example = sync.OnceValues(func() (all node, err error) {
	err = xml.Unmarshal([]byte("<domain>"+DomainElements+"</domain>"), &all)
	return all, err
})

// CheckDomain validates XML text of elements that are to be added to a domain.
func CheckDomain(text string) error {
	if len(text) > mostXML {
		return fmt.Errorf("it has %d bytes, and may have %d", len(text), mostXML)
	}
	if err := checkDomainTokens(text); err != nil {
		return err
	}
	var given node
	if err := xml.Unmarshal([]byte("<domain>"+text+"</domain>"), &given); err != nil {
		return fmt.Errorf("it is not well-formed XML: %w", err)
	}
	if len(given.Children) == 0 {
		return errors.New("it has no element. Leave it out when there is nothing to add")
	}
	known, err := example()
	if err != nil {
		return err
	}
	if err := given.within(known, ""); err != nil {
		return err
	}
	if err := given.checkEntries(false); err != nil {
		return err
	}
	d, err := parseElements(text)
	if err != nil {
		return err
	}
	var understood node
	if err := xml.Unmarshal([]byte("<domain>"+render(d, d)+"</domain>"), &understood); err != nil {
		return err
	}
	return given.without(understood)
}

// checkDomainTokens refuses what two parsers may read differently. Namespaces belong to metadata only.
func checkDomainTokens(text string) error {
	decoder := xml.NewDecoder(strings.NewReader(text))
	for depth, inMetadata := 0, false; ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is not well-formed XML: %w", err)
		}
		switch t := token.(type) {
		case xml.ProcInst, xml.Directive:
			return errors.New("it has a declaration, such as <?xml?> or <!DOCTYPE>: give elements only")
		case xml.EndElement:
			depth--
		case xml.StartElement:
			if depth == 0 {
				inMetadata = t.Name.Local == "metadata" && t.Name.Space == ""
			}
			if err := checkNames(t, inMetadata, depth); err != nil {
				return err
			}
			depth++
		}
	}
}

func checkNames(t xml.StartElement, inMetadata bool, depth int) error {
	seen := map[xml.Name]bool{}
	for _, a := range t.Attr {
		if seen[a.Name] {
			return fmt.Errorf("<%.40s> has the attribute %.40s twice", t.Name.Local, a.Name.Local)
		}
		seen[a.Name] = true
	}
	switch space := t.Name.Space; {
	case inMetadata && depth == 1 && (!strings.Contains(space, ":") || strings.HasPrefix(space, namespaces)):
		return fmt.Errorf("<%.40s> of <metadata> needs an XML namespace of its own, that of the tool that reads it", t.Name.Local)
	case inMetadata && depth > 0:
		return nil
	case space != "":
		return fmt.Errorf("<%.40s> has an XML namespace (%.80s), which only elements of <metadata> may have", t.Name.Local, space)
	}
	for _, a := range t.Attr {
		if a.Name.Space != "" || a.Name.Local == "xmlns" {
			return fmt.Errorf("<%.40s> has an attribute of an XML namespace (%.40s)", t.Name.Local, a.Name.Local)
		}
	}
	return nil
}

// checkEntries refuses entries of the fw_cfg device that are virtclaim's own, and those with a comma: libvirt passes it on as it is, and
// QEMU takes what follows for another option, such as the file of the host with the entry's value. An empty <genid> is another one in each
// definition.
func (n node) checkEntries(inFWCfg bool) error {
	name := n.attr("name")
	switch text := strings.TrimSpace(n.Text); {
	case n.XMLName.Local == "genid" && text == "":
		return errors.New("<genid> has no value: give it a UUID, or it changes with each apply")
	case !inFWCfg || n.XMLName.Local != "entry":
	case strings.HasPrefix(name, ownEntries):
		return fmt.Errorf("the <entry> %.40q is one that virtclaim itself gives to guests", name)
	case strings.Contains(name+text, ","):
		return fmt.Errorf("the <entry> %.40q of the fw_cfg device has a comma, with which QEMU begins another option: leave it out, as "+
			"by encoding the value", name)
	}
	for _, c := range n.Children {
		if err := c.checkEntries(n.XMLName.Local == "sysinfo" && n.attr("type") == "fwcfg"); err != nil {
			return err
		}
	}
	return nil
}

// within returns an error if n has an element, an attribute or a text that the known one may not have. at is its path.
func (n node) within(known node, at string) error {
	if at == "metadata" {
		return nil
	}
	for _, a := range n.Attrs {
		if !known.hasAttr(a.Name.Local) {
			return notTaken(at+"/@"+a.Name.Local, fmt.Sprintf("the attribute %.40s of <%.40s>", a.Name.Local, n.XMLName.Local))
		}
	}
	if text := strings.TrimSpace(n.Text); text != "" && strings.TrimSpace(known.Text) == "" {
		return fmt.Errorf("<%.40s> has the text %.40q, which it can't have", n.XMLName.Local, text)
	}
	for _, c := range n.Children {
		place := strings.TrimPrefix(at+"/"+c.XMLName.Local, "/")
		example, ok := known.child(c)
		if !ok {
			return notTaken(place, fmt.Sprintf("<%.80s>", strings.ReplaceAll(place, "/", "><")))
		}
		if err := c.within(example, place); err != nil {
			return err
		}
	}
	return nil
}

// child is the child of an example that is like c: of the same name, and of the same type where the example names one.
func (n node) child(c node) (node, bool) {
	for _, k := range n.Children {
		if k.XMLName.Local == c.XMLName.Local && (k.attr("type") == "" || matches(k.attr("type"), c.attr("type"))) {
			return k, true
		}
	}
	return node{}, false
}

func (n node) hasAttr(name string) bool {
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return true
		}
	}
	return false
}

func notTaken(place, what string) error {
	if name := attributed[place]; name != "" {
		return fmt.Errorf("%s has an attribute of its own: use %s", what, name)
	}
	return fmt.Errorf("%s is not among what it takes: elements that tune the guest, and open no storage, file or socket of the host. The "+
		"list is in the guide \"All of libvirt's settings\"", what)
}
