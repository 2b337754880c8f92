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

// eachKind calls f for each kind of device that has aliases, with the field of the list, a slice, or a pointer if a domain has at most one.
func eachKind(list *libvirtxml.DomainDeviceList, f func(field int, kind reflect.Value)) {
	v := reflect.ValueOf(list).Elem()
	for i := range v.NumField() {
		if kind := v.Field(i).Type(); kind.Kind() == reflect.Slice || kind.Kind() == reflect.Pointer {
			if _, has := kind.Elem().FieldByName("Alias"); has {
				f(i, v.Field(i))
			}
		}
	}
}

// devicesOf returns the devices of a kind as a slice.
func devicesOf(kind reflect.Value) reflect.Value {
	if kind.Kind() == reflect.Slice {
		return kind
	}
	all := reflect.MakeSlice(reflect.SliceOf(kind.Type().Elem()), 0, 1)
	if !kind.IsNil() {
		all = reflect.Append(all, kind.Elem())
	}
	return all
}

// setDevices sets the devices of a kind. Of one with at most one the last goes before others, such as libvirt's default.
func setDevices(kind, all reflect.Value) {
	switch {
	case kind.Kind() == reflect.Slice:
		kind.Set(all)
	case all.Len() == 0:
		kind.SetZero()
	default:
		last := reflect.New(kind.Type().Elem())
		last.Elem().Set(all.Index(all.Len() - 1))
		kind.Set(last)
	}
}

func aliasOf(device reflect.Value) string {
	if device = reflect.Indirect(device); device.Kind() != reflect.Struct {
		return ""
	}
	if field := device.FieldByName("Alias"); field.IsValid() {
		if a, ok := field.Interface().(*libvirtxml.DomainAlias); ok && a != nil {
			return a.Name
		}
	}
	return ""
}

// addedAsXML returns which devices of a domain were configured as XML: they have an alias of ours, but for <memballoon model='none'>,
// whose alias libvirt drops.
func addedAsXML(d *libvirtxml.Domain) (is func(device reflect.Value) bool) {
	list, _ := parseDevices(metadataOf(d).DevicesXML)
	noBalloon := list.MemBalloon != nil && list.MemBalloon.Model == "none"
	return func(device reflect.Value) bool {
		balloon, ok := device.Interface().(libvirtxml.DomainMemBalloon)
		return strings.HasPrefix(aliasOf(device), xmlAlias) || ok && noBalloon && balloon.Model == "none"
	}
}

// applyDevicesXML replaces only the devices that were added from an earlier devices_xml. CheckDevices has validated the new text.
func applyDevicesXML(d *libvirtxml.Domain, m Machine) {
	var now Machine
	_ = parseDevicesXML(d, metadataOf(d), &now)
	if now.DevicesXML != "" && countXML(d) == 0 { // those of a domain that virtclaim has not defined
		markFound(d)
	}
	if now.DevicesXML == m.DevicesXML && (m.DevicesXML != "" || countXML(d) == 0) {
		return
	}
	added, err := parseDevices(m.DevicesXML)
	if err != nil {
		return
	}
	of, isAdded := reflect.ValueOf(&added).Elem(), addedAsXML(d)
	n := 0
	eachKind(d.Devices, func(field int, kind reflect.Value) {
		devices, more := devicesOf(kind), devicesOf(of.Field(field))
		all := reflect.Zero(devices.Type())
		for i := range devices.Len() {
			if device := devices.Index(i); !isAdded(device) {
				all = reflect.Append(all, device)
			}
		}
		for i := range more.Len() {
			device := more.Index(i)
			device.FieldByName("Alias").Set(reflect.ValueOf(&libvirtxml.DomainAlias{Name: fmt.Sprint(xmlAlias, n)}))
			all = reflect.Append(all, device)
			n++
		}
		setDevices(kind, all)
	})
}

// markFound gives the devices that were read as devices_xml the aliases of devices that were configured so.
func markFound(d *libvirtxml.Domain) {
	n := 0
	foundAsXML{d}.at(func(device reflect.Value) {
		device.FieldByName("Alias").Set(reflect.ValueOf(&libvirtxml.DomainAlias{Name: fmt.Sprint(xmlAlias, n)}))
		n++
	})
}

// countXML returns the number of devices of a domain that were configured as XML.
func countXML(d *libvirtxml.Domain) (n int) {
	isAdded := addedAsXML(d)
	eachKind(d.Devices, func(_ int, kind reflect.Value) {
		devices := devicesOf(kind)
		for i := range devices.Len() {
			if isAdded(devices.Index(i)) {
				n++
			}
		}
	})
	return n
}

// parseDevicesXML returns the text as configured, as long as the domain still has as many devices from it as the text defines. Of a domain
// that virtclaim has not defined, or not started, it is the text that its devices have.
func parseDevicesXML(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	if metadata.DevicesXML == "" && metadata.Phase != "" {
		return nil
	}
	count := countXML(d)
	if count == 0 {
		if found := (foundAsXML{d}).text(); metadata.Phase == "" || found == metadata.DevicesXML {
			m.DevicesXML = found
			return nil
		}
	}
	var given node
	if err := xml.Unmarshal([]byte("<devices>"+metadata.DevicesXML+"</devices>"), &given); err != nil {
		return fmt.Errorf("read virtclaim's devices_xml in the metadata of domain %s: %w", d.Name, err)
	}
	if len(given.Children) == count {
		m.DevicesXML = metadata.DevicesXML
	}
	return nil
}
