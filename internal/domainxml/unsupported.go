package domainxml

import (
	"cmp"
	"encoding/xml"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// modelled are the elements of a domain, and of its devices, that a Machine represents, or that libvirt adds to every domain by
// itself.
var modelled = []string{
	"name", "uuid", "title", "description", "metadata", "memory", "currentMemory", "vcpu", "iothreads", "iothreadids", "resource", "os",
	"features", "cpu", "cputune", "memoryBacking", "clock", "on_poweroff", "on_reboot", "on_crash", "devices", "seclabel",
	"emulator", "disk", "controller", "filesystem", "interface", "input", "audio", "memballoon",
}

// isSingle reports whether elements of that name are a kind of device of which a Machine has at most one.
func isSingle(name string) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.single && p.name == name })
}

// Unsupported returns the names, sorted, of the elements of a domain that neither a Machine nor libvirtxml represents. They are
// preserved when a Machine is applied to the domain; changes of them are not detected.
func (d *Domain) Unsupported() ([]string, error) {
	x, err := d.withoutTaken()
	if err != nil {
		return nil, err
	}
	devices := *x.Devices
	devices.Consoles = withoutSerialTwin(devices.Consoles)
	devices.Channels = slices.DeleteFunc(slices.Clone(devices.Channels), isAgentPort)
	count := elements(reflect.ValueOf(*x))
	maps.Copy(count, elements(reflect.ValueOf(devices)))
	var names []string
	for name, n := range count {
		switch {
		case n == 0 || slices.Contains(modelled, name) || n == 1 && isSingle(name):
		case isSingle(name):
			names = append(names, "all but the first "+name)
		default:
			names = append(names, name)
		}
	}
	names = append(names, unmodelled(d.xml)...)
	unknown, err := unknownNames(d.xml, d.text)
	names = append(names, unknown...)
	slices.Sort(names)
	return slices.Compact(names), err
}

// unmodelled are the names of settings that a Machine does not have, of elements that it has.
func unmodelled(d *libvirtxml.Domain) (names []string) {
	add := func(name string, is bool) {
		if is {
			names = append(names, name)
		}
	}
	add("on_poweroff", d.OnPoweroff != "" && d.OnPoweroff != "destroy")
	if b := d.MemoryBacking; b != nil {
		pages := b.MemoryHugePages != nil && slices.ContainsFunc(b.MemoryHugePages.Hugepages,
			func(p libvirtxml.DomainMemoryHugepage) bool { return p.Nodeset != "" })
		add("hugepages of nodes", pages)
		add("source of memoryBacking", b.MemorySource != nil && b.MemorySource.Type != "memfd")
		add("access of memoryBacking", b.MemoryAccess != nil && b.MemoryAccess.Mode != "shared")
	}
	if c := d.Clock; c != nil {
		add("adjustment of clock", c.Adjustment != "" || c.Basis != "" || c.Start != 0 || !slices.Contains(Offsets, cmp.Or(c.Offset, utc)))
		add("settings of timers", slices.ContainsFunc(c.Timer, func(t libvirtxml.DomainTimer) bool {
			return t.Track != "" || t.CatchUp != nil || t.Frequency != 0 || t.Mode != ""
		}))
	}
	return names
}

// withoutTaken is the domain without what domain_xml takes.
func (d *Domain) withoutTaken() (*libvirtxml.Domain, error) {
	x, err := Unmarshal(d.text) // it is changed
	if err != nil {
		return nil, err
	}
	setEntries(x, isAttributed, nil)
	all, err := parseElements(DomainElements)
	if err != nil {
		return nil, err
	}
	leaveOut(all, x)
	for _, u := range unitsOf(all) {
		u.set(x, all, reflect.Zero(u.of(x, all).Type()))
	}
	markFound(x)
	return x, nil
}

// elements counts the child elements of a libvirtxml structure by name. Attributes and devices that were configured as XML are not
// counted.
func elements(of reflect.Value) map[string]int {
	count := map[string]int{}
	for i := range of.NumField() {
		field, tag := of.Field(i), of.Type().Field(i).Tag.Get("xml")
		name, option, _ := strings.Cut(tag, ",")
		if tag == "" { // the type of an element of another namespace contains its name
			name = nameOf(field.Type().Elem())
		}
		switch {
		case field.Type() == reflect.TypeFor[xml.Name](), strings.Contains(option, "attr"), field.IsZero():
		case field.Kind() == reflect.Slice:
			for n := range field.Len() {
				if !strings.HasPrefix(aliasOf(field.Index(n)), xmlAlias) {
					count[name]++
				}
			}
		case !strings.HasPrefix(aliasOf(field), xmlAlias):
			count[name] = 1
		}
	}
	return count
}

// nameOf returns the element name of a structure, with the part of the namespace before the version as its prefix.
func nameOf(t reflect.Type) string {
	name, _ := t.FieldByName("XMLName")
	space, local, _ := strings.Cut(name.Tag.Get("xml"), " ")
	return path.Base(path.Dir(space)) + ":" + local
}
