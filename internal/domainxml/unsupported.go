package domainxml

import (
	"encoding/xml"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
)

// usual is what libvirt gives to domains by itself, or leaves out without an effect. | is between alternatives, which are patterns of
// path.Match; what is in capitals depends on the domain.
const usual = `<domain id='*'><vcpu placement='static'/><resource><partition>/machine</partition></resource>
<os><type machine='*'/><boot dev='hd'/></os><features><smm state='on'/></features>
<cpu mode='custom' match='exact' check='none|partial' migratable='MIGRATABLE'><model fallback='allow|forbid'>qemu64</model>
 <topology clusters='1'/></cpu>
<on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>
<seclabel type='dynamic' model='*' relabel='yes'/>
<devices><emulator>/usr/bin/kvm|/usr/*/qemu*</emulator><disk><backingStore/></disk>
 <controller type='pci' index='*' model='*'><model name='*'/><target chassis='*' port='*' chassisNr='*'/></controller>
 <controller type='usb' index='*' model='USB'/><controller type='virtio-serial' index='*'/>
 <controller type='sata' index='*'/><controller type='ide' index='*'/><controller type='fdc' index='*'/>
 <controller type='ccid' index='*'/><controller type='scsi' index='0'/>
 <filesystem><driver type='path'/></filesystem>
 <serial><target type='isa-serial|system-serial|spapr-vio-serial|sclp-serial' port='0'><model name='*'/></target></serial>
 <console><target port='*'/></console><channel><source mode='bind'/></channel>
 <input type='mouse' bus='ps2|xen'/><input type='keyboard' bus='ps2|xen'/><tpm model='tpm-crb|tpm-tis|tpm-spapr'/>
 <graphics listen='*'><listen type='address'/></graphics><audio id='*' type='none'/><audio id='*' type='spice'/>
 <video><model ram='65536' vgamem='16384' primary='yes'/></video><watchdog model='itco' action='reset'/>
 <memballoon model='virtio'/></devices></domain>`

// Unsupported returns the paths, sorted, of what the domain has and a new domain of the machine that it was read as would lack, unless
// libvirt gives it to that by itself. It is preserved when a Machine is applied to the domain; changes of it are not detected.
func (d *Domain) Unsupported(as Machine) ([]string, error) {
	if as.Video == nil && as.DefaultVideo.Model != "" {
		as.Video = &as.DefaultVideo
	}
	text, err := Build(as)
	if err != nil {
		return nil, err
	}
	var is, again, own node
	for text, n := range map[string]*node{d.text: &is, text: &again, d.usual(): &own} {
		if err := xml.Unmarshal([]byte(text), n); err != nil {
			return nil, fmt.Errorf("read the domain's XML: %w", err)
		}
	}
	paths := is.lost(again, own, "")
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// usual is what libvirt gives to such a domain.
func (d *Domain) usual() string {
	usb, migratable := "qemu-xhci", ""
	if SameMachineType("pc", typeOf(d.xml)) {
		usb = "piix3-uhci"
	}
	if d.xml.CPU != nil && d.xml.CPU.Mode == "host-passthrough" {
		migratable = "on"
	}
	return strings.NewReplacer("USB", usb, "MIGRATABLE", migratable).Replace(usual)
}

// lost are the paths of what an element at a path has, and neither the same element of a new domain nor libvirt's own has.
func (n node) lost(again, own node, at string) (paths []string) {
	if reflect.DeepEqual(n, again) { // as are the metadata of others, which may be long
		return nil
	}
	for _, a := range n.Attrs {
		name := a.Name.Local
		if a.Name.Space != "xmlns" && name != "xmlns" && again.attr(name) != a.Value && !matches(own.attr(name), a.Value) {
			paths = append(paths, at+"/@"+name)
		}
	}
	if text := strings.TrimSpace(n.Text); text != strings.TrimSpace(again.Text) && !matches(strings.TrimSpace(own.Text), text) {
		paths = append(paths, at)
	}
	counterparts := n.pair(again, own)
	for i, c := range n.Children {
		place := strings.Trim(at+"/"+c.label(), "/")
		usual, isUsual := own.child(c)
		switch k := counterparts[i]; {
		case n.isPlaced(c):
		case k != nil:
			paths = append(paths, c.lost(*k, usual, place)...)
		case isUsual && len(c.lost(node{}, usual, place)) == 0:
		case isSingle(place) && slices.ContainsFunc(again.Children, c.isNamedAs):
			paths = append(paths, "all but the first "+place)
		default:
			paths = append(paths, place)
		}
	}
	return paths
}

// pair returns the counterparts of n's children in the same element of a new domain: first those that lack nothing, then the most
// similar ones with the same identity.
func (n node) pair(again, own node) []*node {
	pairs, taken := make([]*node, len(n.Children)), make([]bool, len(again.Children))
	find := func(fits func(c, k node, lost int) bool) {
		for i, c := range n.Children {
			usual, _ := own.child(c)
			best, least := -1, 0
			for j, k := range again.Children {
				if pairs[i] != nil || taken[j] || !c.isNamedAs(k) || best >= 0 && least == 0 {
					continue
				}
				if lost := len(c.lost(k, usual, "")); fits(c, k, lost) && (best < 0 || lost < least) {
					best, least = j, lost
				}
			}
			if best >= 0 {
				pairs[i], taken[best] = &again.Children[best], true
			}
		}
	}
	find(func(_, _ node, lost int) bool { return lost == 0 })
	find(func(c, k node, _ int) bool { return c.identity() == k.identity() })
	return pairs
}

func (n node) isNamedAs(other node) bool { return n.XMLName.Local == other.XMLName.Local }

// isPlaced reports whether a child of n is where libvirt puts something, or virtclaim's own record.
func (n node) isPlaced(c node) bool {
	switch c.XMLName.Local {
	case "alias":
		return true
	case "uuid":
		return n.XMLName.Local == "domain"
	case "address":
		return c.attr("type") != ""
	case "loader", "nvram":
		return n.attr("firmware") != ""
	case "console": // a copy of the first serial port has such a target, or none
		return !slices.ContainsFunc(c.Children, func(t node) bool {
			return t.XMLName.Local == "target" && !matches("|serial", t.attr("type"))
		})
	}
	return strings.HasPrefix(c.XMLName.Space, namespaces)
}

// identity is what a device is known by; empty for most elements.
func (n node) identity() string {
	if n.XMLName.Local == "controller" {
		return n.attr("type")
	}
	var all []string
	for _, c := range n.Children {
		switch c.XMLName.Local {
		case "target":
			all = append(all, c.attr("dev"), c.attr("dir"))
		case "mac":
			all = append(all, c.attr("address"))
		}
	}
	return strings.Join(all, "")
}

// label is the element in a path, with its identity.
func (n node) label() string {
	name := n.XMLName.Local
	switch {
	case name == "devices":
		return ""
	case n.XMLName.Space != "":
		return path.Base(path.Dir(n.XMLName.Space)) + ":" + name
	}
	return strings.TrimSpace(name + " " + n.identity())
}

func matches(patterns, value string) bool {
	return slices.ContainsFunc(strings.Split(patterns, "|"), func(pattern string) bool {
		is, _ := path.Match(pattern, value) // the patterns are usual's
		return is
	})
}

// isSingle reports whether elements of that name are a kind of device of which a Machine has at most one.
func isSingle(name string) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.single && p.name == name })
}
