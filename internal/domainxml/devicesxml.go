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

func parseDevices(text string) (libvirtxml.DomainDeviceList, error) {
	var list libvirtxml.DomainDeviceList
	err := xml.Unmarshal([]byte("<devices>"+text+"</devices>"), &list)
	if err != nil && !errors.Is(err, io.EOF) {
		return list, fmt.Errorf("read it as libvirt does: %w", err)
	}
	return list, nil
}

// eachDevice calls f for each kind of device that has aliases, with the slice of these devices in the list, which f may set.
func eachDevice(list *libvirtxml.DomainDeviceList, f func(field int, devices reflect.Value)) {
	v := reflect.ValueOf(list).Elem()
	for i := range v.NumField() {
		if devices := v.Field(i); devices.Kind() == reflect.Slice {
			if _, has := devices.Type().Elem().FieldByName("Alias"); has {
				f(i, devices)
			}
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
