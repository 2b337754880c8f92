package domainxml

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"libvirt.org/go/libvirtxml"
)

var devicesXML = part{
	name: "devices_xml", apply: applyDevicesXML, parse: parseDevicesXML,
	same: func(live, want Machine) bool { return live.DevicesXML == want.DevicesXML },
}

// xmlAlias is the prefix of the user alias of a device that is configured as XML; a number from 0 follows.
const xmlAlias = "ua-xml-"

// elsewhere maps the kinds of device that have an attribute of their own to that attribute. They are refused in devices_xml: two
// attributes would conflict over one device, and disks in it would bypass the check whether their storage is in use.
var elsewhere = map[string]string{
	"disk": "disks", "interface": "interfaces", "filesystem": "filesystems", "serial": "serial", "console": "console",
	"tpm": "tpm", "graphics": "graphics", "video": "video", "watchdog": "watchdog", "rng": "rng",
}

// CheckDevices validates XML text of one or more device elements that are to be added to a domain.
func CheckDevices(text string) error {
	if err := checkTokens(text); err != nil {
		return err
	}
	var given node
	if err := xml.Unmarshal([]byte("<devices>"+text+"</devices>"), &given); err != nil {
		return fmt.Errorf("it is not well-formed XML: %w", err)
	}
	if len(given.Children) == 0 {
		return errors.New("it has no element. Leave it out when there is nothing to add")
	}
	if strings.TrimSpace(given.Text) != "" {
		return fmt.Errorf("it has text between its elements: %q", strings.TrimSpace(given.Text))
	}
	for _, device := range given.Children {
		if err := device.check(); err != nil {
			return err
		}
	}
	list, err := parseDevices(text)
	if err != nil {
		return err
	}
	again, err := xml.Marshal(list)
	if err != nil {
		return fmt.Errorf("write it as libvirt wants it: %w", err)
	}
	var understood node
	if err := xml.Unmarshal(again, &understood); err != nil {
		return err
	}
	return given.without(understood)
}

// node is any XML element. Namespaces are ignored in its name.
type node struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []node     `xml:",any"`
}

// check returns an error for a device of a kind that can't be added as XML.
func (n node) check() error {
	kind := n.XMLName.Local
	if attribute, ok := elsewhere[kind]; ok {
		return fmt.Errorf("<%s> has an attribute of its own: use %s", kind, attribute)
	}
	if _, hasAlias := deviceField(kind); !hasAlias {
		return fmt.Errorf("<%s> is not a device that can be added as XML", kind)
	}
	if err := n.checkStorage(); err != nil {
		return err
	}
	for _, child := range n.Children {
		switch {
		case child.XMLName.Local == "alias":
			return fmt.Errorf("<%s> has an <alias>, which virtclaim gives it: leave that out", kind)
		case kind == "channel" && child.attr("name") == "org.qemu.guest_agent.0":
			return errors.New("the <channel> of the guest agent has an attribute of its own: use guest_agent")
		}
	}
	return nil
}

func (n node) attr(name string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// without returns an error if n has an element or an attribute that other lacks, because it would be lost silently.
func (n node) without(other node) error {
	for _, a := range n.Attrs {
		if a.Name.Space != "xmlns" && a.Name.Local != "xmlns" && other.attr(a.Name.Local) == "" && a.Value != "" {
			return fmt.Errorf("the attribute %s of <%s> is not known", a.Name.Local, n.XMLName.Local)
		}
	}
	left := map[string][]node{}
	for _, c := range other.Children {
		left[c.XMLName.Local] = append(left[c.XMLName.Local], c)
	}
	for _, c := range n.Children {
		same := left[c.XMLName.Local]
		if len(same) == 0 {
			return fmt.Errorf("the element <%s> of <%s> is not known", c.XMLName.Local, n.XMLName.Local)
		}
		if err := c.without(same[0]); err != nil {
			return err
		}
		left[c.XMLName.Local] = same[1:]
	}
	return nil
}

func parseDevices(text string) (libvirtxml.DomainDeviceList, error) {
	var list libvirtxml.DomainDeviceList
	err := xml.Unmarshal([]byte("<devices>"+text+"</devices>"), &list)
	if err != nil && !errors.Is(err, io.EOF) {
		return list, fmt.Errorf("read it as libvirt does: %w", err)
	}
	return list, nil
}

// deviceField returns the index of the field of libvirtxml.DomainDeviceList for a kind of device; ok is false if such devices have no
// alias to identify them by.
func deviceField(kind string) (index int, ok bool) {
	list := reflect.TypeFor[libvirtxml.DomainDeviceList]()
	for i := range list.NumField() {
		f := list.Field(i)
		if f.Tag.Get("xml") == kind && f.Type.Kind() == reflect.Slice {
			alias, has := f.Type.Elem().FieldByName("Alias")
			return i, has && alias.Type == reflect.TypeFor[*libvirtxml.DomainAlias]()
		}
	}
	return 0, false
}

// eachDevice calls f for each kind of device that can be added as XML, with the slice of these devices in the list, which f may set.
func eachDevice(list *libvirtxml.DomainDeviceList, f func(field int, devices reflect.Value)) {
	v := reflect.ValueOf(list).Elem()
	for i := range v.NumField() {
		kind := v.Type().Field(i).Tag.Get("xml")
		if n, ok := deviceField(kind); ok && n == i && elsewhere[kind] == "" {
			f(i, v.Field(i))
		}
	}
}

func aliasOf(device reflect.Value) string {
	if field := device.FieldByName("Alias"); field.IsValid() {
		if a, ok := field.Interface().(*libvirtxml.DomainAlias); ok && a != nil {
			return a.Name
		}
	}
	return ""
}

// applyDevicesXML replaces only the devices that were added from an earlier devices_xml. CheckDevices has validated the new text.
func applyDevicesXML(d *libvirtxml.Domain, m Machine) {
	var now Machine
	_ = parseDevicesXML(d, metadataOf(d), &now)
	if now.DevicesXML == m.DevicesXML && (m.DevicesXML != "" || countXML(d) == 0) {
		return
	}
	added, err := parseDevices(m.DevicesXML)
	if err != nil {
		return
	}
	of := reflect.ValueOf(&added).Elem()
	n := 0
	eachDevice(d.Devices, func(field int, devices reflect.Value) {
		all := reflect.Zero(devices.Type())
		for i := range devices.Len() {
			if device := devices.Index(i); !strings.HasPrefix(aliasOf(device), xmlAlias) {
				all = reflect.Append(all, device)
			}
		}
		for i := range of.Field(field).Len() {
			device := of.Field(field).Index(i)
			device.FieldByName("Alias").Set(reflect.ValueOf(&libvirtxml.DomainAlias{Name: fmt.Sprint(xmlAlias, n)}))
			all = reflect.Append(all, device)
			n++
		}
		devices.Set(all)
	})
}

// countXML returns the number of devices of a domain that were configured as XML.
func countXML(d *libvirtxml.Domain) (n int) {
	eachDevice(d.Devices, func(_ int, devices reflect.Value) {
		for i := range devices.Len() {
			if strings.HasPrefix(aliasOf(devices.Index(i)), xmlAlias) {
				n++
			}
		}
	})
	return n
}

// parseDevicesXML returns the text as configured, as long as the domain still has as many devices from it as the text defines.
func parseDevicesXML(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	if metadata.DevicesXML == "" {
		return nil
	}
	var given node
	if err := xml.Unmarshal([]byte("<devices>"+metadata.DevicesXML+"</devices>"), &given); err != nil {
		return fmt.Errorf("read virtclaim's devices_xml in the metadata of domain %s: %w", d.Name, err)
	}
	if len(given.Children) == countXML(d) {
		m.DevicesXML = metadata.DevicesXML
	}
	return nil
}
