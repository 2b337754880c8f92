package domainxml

import (
	"encoding/xml"
	"reflect"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// foundAsXML are the devices of a domain that devices_xml could have given it, and those are left out that libvirt gives to domains by
// itself. at calls f for each of them, in the domain.
type foundAsXML struct{ d *libvirtxml.Domain }

func (found foundAsXML) at(f func(device reflect.Value)) {
	eachKind(found.d.Devices, func(_ int, kind reflect.Value) {
		for i := range devicesOf(kind).Len() {
			device := kind
			if kind.Kind() == reflect.Slice {
				device = kind.Index(i)
			}
			if device = reflect.Indirect(device); canBeXML(device) {
				f(device)
			}
		}
	})
}

// text is what devices_xml says of them.
func (found foundAsXML) text() string {
	var list libvirtxml.DomainDeviceList
	of := reflect.ValueOf(&list).Elem()
	found.at(func(device reflect.Value) { addDevice(of, withoutPlace(device)) })
	return textOf(list)
}

// addDevice adds a device to the list of its kind.
func addDevice(list, device reflect.Value) {
	for i := range list.NumField() {
		kind := list.Field(i)
		switch kind.Type() {
		case reflect.SliceOf(device.Type()):
			kind.Set(reflect.Append(kind, device))
		case reflect.PointerTo(device.Type()):
			kind.Set(reflect.New(device.Type()))
			kind.Elem().Set(device)
		}
	}
}

// withoutPlace is a copy of a device without what libvirt gives to it: its alias, and its address in the guest.
func withoutPlace(device reflect.Value) reflect.Value {
	is := reflect.New(device.Type()).Elem()
	is.Set(device)
	for _, name := range []string{"Alias", "Address", "ACPI"} {
		if field := is.FieldByName(name); field.IsValid() {
			field.SetZero()
		}
	}
	return is
}

// CanonicalDevices is the text of devices_xml as it is read from a domain of others that has just these devices; the text itself if it
// can't be read.
func CanonicalDevices(text string) string {
	list, err := parseDevices(text)
	if err != nil {
		return text
	}
	return textOf(list)
}

func textOf(list libvirtxml.DomainDeviceList) string {
	text, err := xml.MarshalIndent(list, "", "  ")
	if err != nil {
		return ""
	}
	_, inner, _ := strings.Cut(string(text), ">")
	inner = inner[:max(strings.LastIndex(inner, "</"), 0)]
	return strings.TrimSpace(strings.ReplaceAll(inner, "\n  ", "\n"))
}

// canBeXML reports whether devices_xml takes such a device, and libvirt has not given it to the domain by itself.
func canBeXML(device reflect.Value) bool {
	switch is := device.Interface().(type) {
	case libvirtxml.DomainController:
		return false
	case libvirtxml.DomainInput:
		if slices.Contains([]string{"ps2", "xen"}, is.Bus) {
			return false
		}
	case libvirtxml.DomainMemBalloon:
		if reflect.DeepEqual(withoutPlace(device).Interface(), libvirtxml.DomainMemBalloon{XMLName: is.XMLName, Model: "virtio"}) {
			return false
		}
	}
	var list libvirtxml.DomainDeviceList
	addDevice(reflect.ValueOf(&list).Elem(), withoutPlace(device))
	return CheckDevices(textOf(list)) == nil
}
