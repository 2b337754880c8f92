package domainxml

import (
	"encoding/xml"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// domainXML is the part that takes whole elements from the configuration. It comes last, so that it finds what attributes have written.
var domainXML = part{name: "domain_xml", apply: applyDomainXML, parse: parseDomainXML}

// startedWith reports whether a running domain was started with the elements of want. libvirt adds to some of them when it starts one.
func (d *Domain) startedWith(is, want Machine) bool {
	if is.isUnmanaged() && want.DomainXML == "" {
		return is.DomainXML == ""
	}
	ours := d.metadata.Phase != "" && d.metadata.DomainXML != ""
	if ours || want.DomainXML == "" {
		return d.metadata.DomainXML == want.DomainXML
	}
	like, err := parseElements(want.DomainXML)
	return err == nil && render(d.xml, like) == render(like, like)
}

// unit is an element of a domain, or of one of the elements in shared, that domain_xml has as a whole: indices of fields of libvirtxml's
// structures. inner is -1 for an element of the domain itself.
type unit struct{ outer, inner int }

// shared are elements of which attributes have some children, and domain_xml others.
var shared = []string{"features", "cpu", "cputune", "memoryBacking", "os"}

// unitsOf are the units that a domain has.
func unitsOf(d *libvirtxml.Domain) (all []unit) {
	eachElement(reflect.ValueOf(d).Elem(), func(outer int, name string, v reflect.Value) {
		if !slices.Contains(shared, name) {
			all = append(all, unit{outer, -1})
			return
		}
		eachElement(v.Elem(), func(inner int, _ string, _ reflect.Value) { all = append(all, unit{outer, inner}) })
	})
	return all
}

// eachElement calls f for each child element that a structure has.
func eachElement(of reflect.Value, f func(n int, name string, v reflect.Value)) {
	for n := range of.NumField() {
		name, option, _ := strings.Cut(of.Type().Field(n).Tag.Get("xml"), ",")
		if v := of.Field(n); !v.IsZero() && !strings.Contains(option, "attr") && v.Type() != reflect.TypeFor[xml.Name]() {
			f(n, name, v)
		}
	}
}

// of is the unit's value in a domain. like is the domain whose units are meant, which limits metadata to elements of the same names.
func (u unit) of(d, like *libvirtxml.Domain) reflect.Value {
	field := reflect.ValueOf(d).Elem().Field(u.outer)
	switch {
	case u.inner >= 0 && field.IsNil():
		return reflect.Zero(field.Type().Elem().Field(u.inner).Type)
	case u.inner >= 0:
		return field.Elem().Field(u.inner)
	case field.Type() == reflect.TypeFor[[]libvirtxml.DomainSysInfo]():
		return reflect.ValueOf(othersSysInfo(d, like))
	case field.Type() == reflect.TypeFor[*libvirtxml.DomainMetadata]():
		return reflect.ValueOf(othersMetadata(d, like))
	}
	return field
}

// set changes the unit's value in a domain. An element of shared that has nothing any more goes.
func (u unit) set(d, like *libvirtxml.Domain, to reflect.Value) {
	field := reflect.ValueOf(d).Elem().Field(u.outer)
	switch value := to.Interface().(type) {
	case []libvirtxml.DomainSysInfo:
		setOthersSysInfo(d, like, value)
		return
	case *libvirtxml.DomainMetadata:
		setOthersMetadata(d, like, value)
		return
	}
	if u.inner < 0 {
		field.Set(to)
		return
	}
	if field.IsNil() {
		field.Set(reflect.New(field.Type().Elem()))
	}
	field.Elem().Field(u.inner).Set(to)
	empty := reflect.New(field.Type().Elem()).Elem()
	if name := field.Elem().FieldByName("XMLName"); name.IsValid() {
		empty.FieldByName("XMLName").Set(name)
	}
	if reflect.DeepEqual(field.Elem().Interface(), empty.Interface()) && field.Type() != reflect.TypeFor[*libvirtxml.DomainOS]() {
		field.SetZero()
	}
}

// render is the canonical text of the units that like has, with their values in a domain.
func render(d, like *libvirtxml.Domain) string {
	var only libvirtxml.Domain
	for _, u := range unitsOf(like) {
		if v := u.of(d, like); !v.IsZero() {
			u.set(&only, like, v)
		}
	}
	text, err := only.Marshal()
	if err != nil {
		return ""
	}
	_, text, _ = strings.Cut(text, ">")
	text = text[:max(strings.LastIndex(text, "</domain>"), 0)] // metadata of others may have an element of that name
	return strings.TrimSpace(strings.ReplaceAll(text, "\n  ", "\n"))
}

func parseElements(text string) (*libvirtxml.Domain, error) {
	d := &libvirtxml.Domain{}
	if err := d.Unmarshal("<domain>" + text + "</domain>"); err != nil {
		return d, fmt.Errorf("read it as libvirt does: %w", err)
	}
	return d, nil
}

// CanonicalXML is the text of domain_xml as it is read from a domain that has just this; the text itself if it can't be read.
func CanonicalXML(text string) string {
	d, err := parseElements(text)
	if err != nil {
		return text
	}
	return render(d, d)
}

// NUMAMemory is the sum of the memory, in KiB, of the NUMA cells in a text of domain_xml: libvirt makes it the memory of the guest. It is
// 0 if there are none, or a unit is not known.
func NUMAMemory(text string) (sum uint) {
	d, err := parseElements(text)
	if err != nil || d.CPU == nil || d.CPU.Numa == nil {
		return 0
	}
	for _, c := range d.CPU.Numa.Cell {
		kib := map[string]uint{"": 1, "KiB": 1, "k": 1, "MiB": 1 << 10, "M": 1 << 10, "GiB": 1 << 20, "G": 1 << 20}
		if kib[c.Unit] == 0 {
			return 0
		}
		sum += c.Memory * kib[c.Unit]
	}
	return sum
}

// ownedUnits is a domain with the units that domain_xml owns in another one: those of the configured text, and all that can be configured
// in a domain that virtclaim has not defined.
func ownedUnits(d *libvirtxml.Domain, metadata machineMetadata) (*libvirtxml.Domain, error) {
	if metadata.Phase != "" {
		return parseElements(metadata.DomainXML)
	}
	all, err := parseElements(DomainElements)
	if err != nil {
		return all, err
	}
	if hasHyperV(d) {
		all.Features.HyperV = nil
	}
	leaveOut(all, d)
	return all, nil
}

// leaveOut takes the units out of all whose elements in a domain are not taken as a configuration: they stay as they are.
func leaveOut(all, d *libvirtxml.Domain) {
	for _, u := range unitsOf(all) {
		value, only := u.of(d, all), &libvirtxml.Domain{}
		if value.IsZero() {
			continue
		}
		if u.set(only, all, value); CheckDomain(render(only, only)) != nil {
			u.set(all, all, reflect.Zero(value.Type()))
		}
	}
}

// applyDomainXML replaces the units of the earlier text by those of the new one. CheckDomain has validated it.
func applyDomainXML(d *libvirtxml.Domain, m Machine) {
	var now Machine
	metadata := metadataOf(d)
	if err := parseDomainXML(d, metadata, &now); err != nil || now.DomainXML == m.DomainXML {
		return
	}
	before, err := ownedUnits(d, metadata)
	if err != nil {
		return
	}
	want, err := parseElements(m.DomainXML)
	if err != nil {
		return
	}
	for _, u := range unitsOf(before) {
		u.set(d, before, reflect.Zero(u.of(d, before).Type()))
	}
	for _, u := range unitsOf(want) {
		u.set(d, want, u.of(want, want))
	}
}

// parseDomainXML returns the text as configured as long as libvirt has what it had made of that; otherwise what the domain has now.
func parseDomainXML(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	like, err := ownedUnits(d, metadata)
	if err != nil {
		return fmt.Errorf("read virtclaim's domain_xml in the metadata of domain %s: %w", d.Name, err)
	}
	m.DomainXML = render(d, like)
	if metadata.Phase != "" && (metadata.StoredXML == "" || metadata.StoredXML == m.DomainXML) {
		m.DomainXML = metadata.DomainXML
	}
	return nil
}

// storedXML is what libvirt has made of the text, to be recorded: known from the second definition on that has it.
func storedXML(d *libvirtxml.Domain, m Machine) string {
	before := metadataOf(d)
	like, err := parseElements(m.DomainXML)
	if err != nil || m.DomainXML == "" || before.DomainXML != m.DomainXML {
		return ""
	}
	now := render(d, like)
	if before.StoredXML != "" && before.StoredXML != now && now == render(like, like) { // it was just written again
		return ""
	}
	return now
}

// hasType reports whether a domain has such information of the type of s.
func hasType(d *libvirtxml.Domain, s libvirtxml.DomainSysInfo) bool {
	return slices.ContainsFunc(d.SysInfo, func(of libvirtxml.DomainSysInfo) bool { return (of.FWCfg == nil) == (s.FWCfg == nil) })
}

// othersSysInfo are a domain's of the types that like has, without what virtclaim itself gives to guests.
func othersSysInfo(d, like *libvirtxml.Domain) (all []libvirtxml.DomainSysInfo) {
	for _, s := range d.SysInfo {
		if !hasType(like, s) {
			continue
		}
		if s.FWCfg != nil {
			s.FWCfg = &libvirtxml.DomainSysInfoFWCfg{Entry: slices.DeleteFunc(slices.Clone(s.FWCfg.Entry), isAttributed)}
			if len(s.FWCfg.Entry) == 0 {
				continue
			}
		}
		all = append(all, s)
	}
	return all
}

func setOthersSysInfo(d, like *libvirtxml.Domain, all []libvirtxml.DomainSysInfo) {
	own := entriesOf(d, isAttributed)
	d.SysInfo = slices.DeleteFunc(slices.Clone(d.SysInfo), func(s libvirtxml.DomainSysInfo) bool { return hasType(like, s) })
	for _, s := range all {
		if s.FWCfg != nil {
			s.FWCfg = &libvirtxml.DomainSysInfoFWCfg{Entry: slices.Clone(s.FWCfg.Entry)}
		}
		d.SysInfo = append(d.SysInfo, s)
	}
	setEntries(d, isAttributed, own)
}

// metadataElement is one element of a domain's metadata.
type metadataElement struct {
	name xml.Name
	text string
}

// metadataElements are those of all tools but virtclaim.
func metadataElements(d *libvirtxml.Domain) (all []metadataElement, err error) {
	others, _, err := splitMetadata(d)
	if err != nil {
		return nil, err
	}
	dec := xml.NewDecoder(strings.NewReader(others))
	for {
		start := dec.InputOffset()
		token, err := dec.Token()
		if err == io.EOF { //nolint:errorlint // the decoder returns it as it is
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if element, ok := token.(xml.StartElement); ok {
			if err := dec.Skip(); err != nil {
				return nil, err
			}
			all = append(all, metadataElement{element.Name, others[start:dec.InputOffset()]})
		}
	}
}

// othersMetadata are the elements that like has, too; all of them if it has none.
func othersMetadata(d, like *libvirtxml.Domain) *libvirtxml.DomainMetadata {
	all, err := metadataElements(d)
	names, _ := metadataElements(like)
	var text strings.Builder
	for _, e := range all {
		if len(names) == 0 || slices.ContainsFunc(names, func(n metadataElement) bool { return n.name == e.name }) {
			text.WriteString(e.text)
		}
	}
	if err != nil || text.Len() == 0 {
		return nil
	}
	return &libvirtxml.DomainMetadata{XML: text.String()}
}

func setOthersMetadata(d, like *libvirtxml.Domain, to *libvirtxml.DomainMetadata) {
	_, ours, err := splitMetadata(d)
	if err != nil {
		return // the write of the metadata reports it
	}
	names, _ := metadataElements(like)
	all, _ := metadataElements(d)
	var text strings.Builder
	for _, e := range all {
		if len(names) > 0 && !slices.ContainsFunc(names, func(n metadataElement) bool { return n.name == e.name }) {
			text.WriteString(e.text)
		}
	}
	if to != nil {
		text.WriteString(to.XML)
	}
	d.Metadata = nil
	if text.WriteString(ours); text.Len() > 0 {
		d.Metadata = &libvirtxml.DomainMetadata{XML: text.String()}
	}
}
