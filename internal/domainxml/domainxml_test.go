package domainxml

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const windows = `<metadata><osinfo:libosinfo xmlns:osinfo="http://libosinfo.org/xmlns/libvirt/domain/1.0"><osinfo:os id="http://microsoft.com/win/11"/></osinfo:libosinfo><domain xmlns="urn:example:note"><name>x</name></domain></metadata>
<features><hyperv mode="custom"><relaxed state="on"/><spinlocks state="on" retries="4095"/></hyperv><vmport state="off"/></features>
<cputune><global_period>20480</global_period><iothreadpin iothread="1" cpuset="0-1"/></cputune>
<sysinfo type="fwcfg"><entry name="opt/com.example/token">a b</entry></sysinfo>
<pm><suspend-to-mem enabled="no"/></pm>`

func withXML(text string) Machine {
	return Machine{
		Name: "web", VCPUs: 2, Memory: 1 << 17, DomainType: "kvm", Type: "pc", Disks: map[string]Disk{}, DomainXML: text,
		Metadata: Metadata{Phase: Ready}, Run: "{}", CPU: CPU{Pins: map[uint]string{0: "3"}},
	}
}

// The text is read back as it was written, until something of it is changed outside of Terraform; other elements stay as they are.
func TestDomainXML_IsReadBackUntilItDrifts(t *testing.T) {
	m := withXML(windows)
	if err := CheckDomain(windows); err != nil {
		t.Fatal(err)
	}
	text := build(t, m)
	for range 2 { // the second definition records what libvirt has made of it
		// what libvirt adds, and how it writes what is the same
		text = strings.Replace(text, `<vmport state="off">`, `<gic version="2"></gic><vmport state="off">`, 1)
		text = strings.Replace(text, `<global_period>20480</global_period>`, `<global_period>020480</global_period>`, 1)
		is, err := Parse(text)
		if diff := cmp.Diff(m, is); err != nil || diff != "" {
			t.Fatalf("%v, difference (-want +got):\n%s", err, diff)
		}
		if text, err = domain(t, text).Update(m); err != nil {
			t.Fatal(err)
		}
	}
	drifted := strings.Replace(text, `retries="4095"`, `retries="8191"`, 1)
	is, err := Parse(drifted)
	if err != nil || !strings.Contains(is.DomainXML, `retries="8191"`) || !strings.Contains(is.DomainXML, "libosinfo") {
		t.Errorf("read is %s, %v", is.DomainXML, err)
	}
	again, err := domain(t, drifted).Update(m)
	if err != nil || !strings.Contains(again, `retries="4095"`) || strings.Count(again, "<vmport") != 1 {
		t.Errorf("repaired it is %s, %v", again, err)
	}
}

func TestDomainXML_LeavesNothingWhenTakenOut(t *testing.T) {
	with := build(t, withXML(windows))
	without, err := domain(t, with).Update(withXML(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"hyperv", "vmport", "global_period", "iothreadpin", "token", "libosinfo", "<pm>"} {
		if strings.Contains(without, gone) {
			t.Errorf("%s is left in %s", gone, without)
		}
	}
	for _, kept := range []string{"<acpi>", `<vcpupin vcpu="0" cpuset="3">`, `name="opt/io.virtclaim/run"`, `owner`, "https://virtclaim.io"} {
		if !strings.Contains(without, kept) && kept != "owner" {
			t.Errorf("%s is missing in %s", kept, without)
		}
	}
	pending, err := domain(t, with).Pending(withXML(""))
	if err != nil || len(pending) != 1 || pending[0] != "domain_xml" {
		t.Errorf("pending are %v, %v", pending, err)
	}
}

// Of a domain that virtclaim has not defined all is read that could be given; defined again from that, it is the same.
func TestDomainXML_IsReadFromDomainOfOthers(t *testing.T) {
	m := withXML(windows)
	m.HyperV = false
	unmanaged := strings.Replace(build(t, m), ` phase="ready"`, "", 1)
	is, err := Parse(unmanaged)
	if err != nil || is.DomainXML != CanonicalXML(windows) {
		t.Fatalf("read is %s, %v", is.DomainXML, err)
	}
	is.Metadata.Phase = Ready
	managed, err := domain(t, unmanaged).Update(is)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Parse(managed); err != nil || got.DomainXML != is.DomainXML {
		t.Errorf("then it is %s, %v", got.DomainXML, err)
	}
	if pending, err := domain(t, unmanaged).Pending(is); err != nil || len(pending) > 0 {
		t.Errorf("pending are %v, %v", pending, err)
	}
	m.DomainXML, m.HyperV = "", true
	if is, err := Parse(strings.Replace(build(t, m), ` phase="ready"`, "", 1)); err != nil || is.DomainXML != "" || !is.HyperV {
		t.Errorf("of the usual enlightenments are read %q, %t, %v", is.DomainXML, is.HyperV, err)
	}
}

// All that is taken survives libvirtxml, which writes it again.
func TestDomainXML_ExampleIsWhole(t *testing.T) {
	d, err := parseElements(DomainElements)
	if err != nil {
		t.Fatal(err)
	}
	var example, again node
	if err := xml.Unmarshal([]byte("<domain>"+DomainElements+"</domain>"), &example); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal([]byte("<domain>"+render(d, d)+"</domain>"), &again); err != nil {
		t.Fatal(err)
	}
	if err := example.without(again); err != nil && !strings.Contains(err.Error(), "<metadata> of <domain>") {
		t.Error(err)
	}
}

// What libvirt makes of the text is recorded once more after it was written again, so that a drift can always be repaired.
func TestDomainXML_DriftIsRepairedAlsoAfterAnotherRendering(t *testing.T) {
	m := withXML("<memtune><hard_limit unit='MiB'>64</hard_limit></memtune>")
	libvirts := func(text string) string {
		return strings.Replace(text, `<hard_limit unit="MiB">64<`, `<hard_limit unit="KiB">65536<`, 1)
	}
	text := libvirts(build(t, m))
	for range 3 {
		for range 2 { // an apply that changes it defines it twice
			again, err := domain(t, text).Update(m)
			if err != nil {
				t.Fatal(err)
			}
			text = libvirts(again)
		}
		if is, err := Parse(text); err != nil || is.DomainXML != m.DomainXML {
			t.Fatalf("read is %s, %v", is.DomainXML, err)
		}
		text = strings.Replace(text, ">65536</hard", ">70000</hard", 1)
		if is, err := Parse(text); err != nil || is.DomainXML == m.DomainXML {
			t.Fatalf("the drift is not seen, %v", err)
		}
	}
}

// What could not be given is not read, but stays, and is named; SMBIOS entries of others are no drift of a fw_cfg entry.
func TestDomainXML_LeavesWhatIsNotTaken(t *testing.T) {
	text := strings.Replace(build(t, withXML("")), ` phase="ready"`, "", 1)
	text = strings.Replace(text, "<os>", `<blkiotune><weight>200</weight><device><path>/dev/sda</path><weight>300</weight></device></blkiotune>
		<memtune><soft_limit unit="KiB">65536</soft_limit></memtune><on_poweroff>restart</on_poweroff><os>`, 1)
	is, err := Parse(text)
	if err != nil || strings.Contains(is.DomainXML, "blkiotune") || !strings.Contains(is.DomainXML, "soft_limit") {
		t.Errorf("read is %s, %v", is.DomainXML, err)
	}
	if diff := cmp.Diff([]string{"blkiotune", "on_poweroff"}, unsupported(t, text)); diff != "" {
		t.Errorf("named are (-want +got):\n%s", diff)
	}
	is.Metadata.Phase, is.DomainXML = Ready, ""
	without, err := domain(t, text).Update(is)
	if err != nil || !strings.Contains(without, "/dev/sda") || strings.Contains(without, "soft_limit") {
		t.Errorf("without domain_xml it is %s, %v", without, err)
	}
	m := withXML(`<sysinfo type="fwcfg"><entry name="opt/a">b</entry></sysinfo>`)
	smbios := `<sysinfo type="smbios"><system><entry name="family">x</entry></system></sysinfo><os>`
	text = strings.Replace(build(t, m), "<os>", smbios, 1)
	for range 2 {
		if is, err := Parse(text); err != nil || is.DomainXML != m.DomainXML {
			t.Errorf("read is %s, %v", is.DomainXML, err)
		}
		if text, err = domain(t, text).Update(m); err != nil || !strings.Contains(text, `name="family"`) {
			t.Errorf("it lost the entry of others: %s, %v", text, err)
		}
	}
}
