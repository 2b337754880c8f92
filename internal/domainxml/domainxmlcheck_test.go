package domainxml

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"
	"testing"
)

// hostile are what could be added to an element to have it open something of the host, to hide that from one of two parsers, or to make it
// another element; %s is the element's name.
var hostile = map[string]string{
	"a file":                  `<%[1]s file="/etc/shadow"/>`,
	"a path":                  `<%[1]s path="/etc/shadow"/>`,
	"a device":                `<%[1]s dev="/dev/sda"/>`,
	"a socket":                `<%[1]s socket="/run/libvirt/libvirt-sock"/>`,
	"a program":               `<%[1]s exec="/bin/sh"/>`,
	"a source":                `<%[1]s><source file="/etc/shadow"/></%[1]s>`,
	"a device's source":       `<%[1]s><source dev="/dev/sda"/></%[1]s>`,
	"a disk":                  `<%[1]s><disk type="file"><source file="/etc/shadow"/></disk></%[1]s>`,
	"an emulator":             `<%[1]s><emulator>/bin/sh</emulator></%[1]s>`,
	"a loader":                `<%[1]s><loader>/etc/shadow</loader></%[1]s>`,
	"a template":              `<%[1]s template="/etc/shadow"/>`,
	"arguments":               `<%[1]s xmlns:qemu="http://libvirt.org/schemas/domain/qemu/1.0"><qemu:commandline><qemu:arg value="-s"/></qemu:commandline></%[1]s>`,
	"a namespace":             `<%[1]s xmlns="http://libvirt.org/schemas/domain/qemu/1.0"/>`,
	"a prefix":                `<qemu:%[1]s/>`,
	"an attribute's prefix":   `<%[1]s qemu:mode="x"/>`,
	"twice the attribute":     `<%[1]s mode="a" mode="b"/>`,
	"twice the attribute too": `<%[1]s state="on" name="x" state="off"/>`,
	"an unknown entity":       `<%[1]s>&file;</%[1]s>`,
	"an external entity":      `<!DOCTYPE d [<!ENTITY file SYSTEM "file:///etc/shadow">]><%[1]s>&file;</%[1]s>`,
	"an instruction":          `<?include /etc/shadow?><%[1]s/>`,
	"a declaration":           `<?xml version="1.1" encoding="utf-7"?><%[1]s/>`,
	"the end of its parent":   `</domain><domain><%[1]s/>`,
	"devices":                 `</%[1]s><devices/><%[1]s>`,
	"no end":                  `<%[1]s><!-- </%[1]s>`,
	"a bad character":         "<%[1]s>\x00</%[1]s>",
	"a bad character's name":  `<%[1]s>&#0;</%[1]s>`,
	"too much":                `<%[1]s>` + strings.Repeat("x", mostXML) + `</%[1]s>`,
	"too deep":                strings.Repeat("<%[1]s>", 100) + strings.Repeat("</%[1]s>", 100),
}

// names are the names of all elements in a text.
func names(t *testing.T, text string) []string {
	t.Helper()
	seen := map[string]bool{}
	var all []string
	dec := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := dec.Token()
		if err != nil {
			return all
		}
		if e, ok := token.(xml.StartElement); ok && !seen[e.Name.Local] {
			seen[e.Name.Local] = true
			all = append(all, e.Name.Local)
		}
	}
}

// Hostile additions to each element that is taken are refused, as elements of the domain, of the elements that are shared, and as devices.
func TestCheckDomain_RefusesWhatOpensSomethingOfTheHost(t *testing.T) {
	tried := 0
	for _, name := range names(t, "<all>"+DomainElements+"</all>")[1:] {
		for what, text := range hostile {
			text = strings.ReplaceAll(text, "%[1]s", name)
			for _, around := range []string{"%s", "<features>%s</features>", "<cpu>%s</cpu>", "<os>%s</os>", "<sysinfo type='fwcfg'>%s</sysinfo>"} {
				tried++
				if err := CheckDomain(fmt.Sprintf(around, text)); err == nil && name != "metadata" {
					t.Errorf("%s in <%s> is taken as %s", what, name, fmt.Sprintf(around, text))
				} else if err != nil && len(err.Error()) > 280 {
					t.Errorf("%d characters: %s", len(err.Error()), err)
				}
			}
		}
	}
	for _, device := range names(t, "<all>"+known+"</all>")[1:] {
		for what, text := range hostile {
			tried++
			if err := CheckDevices(strings.ReplaceAll(text, "%[1]s", device)); err == nil {
				t.Errorf("%s in a <%s> is taken", what, device)
			}
		}
	}
	if tried < 400 {
		t.Errorf("only %d were tried", tried)
	}
}

func TestCheckDomain_NamesTheAttribute(t *testing.T) {
	for text, want := range map[string]string{
		`<memory>1</memory>`: "use memory", `<cpu mode="host-model"/>`: "use cpu.mode", `<cpu><feature name="aes"/></cpu>`: "use cpu.features",
		`<cputune><vcpupin vcpu="0" cpuset="1"/></cputune>`: "use cpu.pin", `<cputune><shares>1</shares></cputune>`: "use cpu.shares",
		`<sysinfo type="fwcfg"><entry name="opt/a" file="/etc/passwd"/></sysinfo>`: "use fw_cfg", `<os><loader>x</loader></os>`: "use firmware",
		`<clock offset="utc"/>`: "use clock", `<memoryBacking><hugepages/></memoryBacking>`: "use memory_backing.huge_pages",
		`<devices/>`: "or devices_xml", `<on_crash>destroy</on_crash>`: "use on_crash", `<os firmware="efi"/>`: "use firmware",
		`<on_poweroff>restart</on_poweroff>`: "<on_poweroff> is not among", `<idmap/>`: "<idmap> is not among", `<features>x</features>`: "the text",
		`<sysinfo type="fwcfg"><entry name="opt/x" file="/x"/></sysinfo>`: "the attribute file", ``: "no element", `x`: "no element",
		`<sysinfo type="fwcfg"><entry name="opt/io.virtclaim/run">x</entry></sysinfo>`: "virtclaim itself", `<genid>1</genid><genid>2</genid>`: "genid",
		`<genid/>`: "no value",
		`<sysinfo type="fwcfg"><entry name="opt/a">,file=/etc/shadow</entry></sysinfo>`: "has a comma", `<sysinfo type='fwcfg'><entry name='opt/a'>&#44;file=x</entry></sysinfo>`: "a comma",
		`<sysinfo type="fwcfg"><entry name="opt/a,file=/etc/shadow">x</entry></sysinfo>`:            "has a comma",
		`<sysinfo type="fwcfg"><entry name="opt/a"><![CDATA[,file=/etc/shadow]]></entry></sysinfo>`: "has a comma",
		`<metadata><a/></metadata>`: "needs an XML namespace", `<metadata><v:machine xmlns:v="https://virtclaim.io/libvirt/domain/1"/></metadata>`: "needs an XML",
		`<blkiotune><device><path>/dev/sda</path></device></blkiotune>`: "<blkiotune><device> is not", `<features><hyperv/></features><features/>`: "features",
	} {
		if err := CheckDomain(text); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 280 {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The guide has the list.
func TestDomainElements_AreInTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../templates/guides/libvirt-settings.md")
	if err != nil || !strings.Contains(string(guide), "```xml\n"+DomainElements+"\n```") {
		t.Errorf("the guide has another list than DomainElements (%v)", err)
	}
}

// What is taken has only elements and attributes of the list, and it can be applied, read back and taken out again.
func FuzzCheckDomain(f *testing.F) {
	f.Add(windows)
	f.Add(strings.ReplaceAll(DomainElements, "#", "x"))
	for _, text := range hostile {
		f.Add(strings.ReplaceAll(text, "%[1]s", "hyperv"))
	}
	var example node
	if err := xml.Unmarshal([]byte("<domain>"+DomainElements+"</domain>"), &example); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if CheckDomain(text) != nil {
			return
		}
		m := withXML(text)
		built, err := Build(m)
		if err != nil {
			t.Fatal(err)
		}
		d, err := parseElements(text)
		if err != nil {
			t.Fatal(err)
		}
		var is node
		if err := xml.Unmarshal([]byte("<domain>"+render(d, d)+"</domain>"), &is); err != nil {
			t.Fatal(err)
		}
		if err := is.within(example, ""); err != nil {
			t.Error(err)
		}
		if got, err := Parse(built); err != nil || got.DomainXML != text {
			t.Errorf("read back is %q, %v", got.DomainXML, err)
		}
		plain, err := Build(withXML(""))
		if err != nil {
			t.Fatal(err)
		}
		if without, err := domain(t, built).Update(withXML("")); err != nil || len(without) != len(plain) {
			t.Errorf("%v, left is something in\n%s", err, without)
		}
	})
}
