package kubevirt

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// element is one of libvirt's XML, with attributes as pairs of names and values.
func element(name, within string, attributes ...string) string {
	text := "<" + name
	for i := 0; i+1 < len(attributes); i += 2 {
		text += fmt.Sprintf(` %s="%s"`, attributes[i], escaped(attributes[i+1]))
	}
	if within == "" {
		return text + "/>\n"
	}
	return fmt.Sprintf("%s>%s</%s>\n", text, within, name)
}

// escaped is a text in XML.
func escaped(text string) string {
	var to strings.Builder
	_ = xml.EscapeText(&to, []byte(text)) // a Builder takes all
	return to.String()
}

// hyperv are the enlightenments of Windows that are on or off, which libvirt calls the same.
const hyperv = "relaxed vapic vpindex runtime synic reset frequencies reenlightenment tlbflush ipi evmcs"

// features are elements of the domain, which have no attribute.
func (c *converter) features() {
	feature := func(own, preferred string) *node {
		return c.first(c.domain, "features."+own+"|preference.features."+preferred)
	}
	for _, n := range []*node{feature("acpi", "preferredAcpi"), feature("apic", "preferredApic")} {
		if n.isOff() { // each machine has both
			cmp.Or(n.at("enabled"), n).refuse("a machine without it could not be shut down")
		}
	}
	firmware, _ := c.to["firmware"].(values)
	if smm := feature("smm", "preferredSmm"); smm.isOff() && firmware["secure_boot"] == true {
		cmp.Or(smm.at("enabled"), smm).refuse("secure boot needs it")
	}
	text := enlightenments(c.domain.set("features.hyperv"), c.preference.set("features.preferredHyperv"))
	if hidden := feature("kvm.hidden", "preferredKvm.hidden"); hidden != nil {
		text += element("kvm", element("hidden", "", "state", hidden.state()))
	}
	if spin := feature("pvspinlock", "preferredPvspinlock"); spin != nil {
		text += element("pvspinlock", "", "state", spin.state())
	}
	if text != "" {
		text = element("features", text)
	}
	if text += c.identity(); text != "" {
		c.to["domain_xml"] = text
	}
}

// enlightenments are those of Windows, of the machine or of its preference, one by one.
func enlightenments(n, preferred *node) (text string) {
	if n == nil && preferred == nil {
		return ""
	}
	pick := func(name string) *node {
		own, other := n.at(name), preferred.at(name)
		if own != nil {
			other.skip()
		}
		return cmp.Or(own, other)
	}
	for _, name := range strings.Fields(hyperv) {
		if on := pick(name); on != nil {
			text += element(name, "", "state", on.state())
		}
	}
	if spin := pick("spinlocks"); spin != nil {
		text += element("spinlocks", "", "state", spin.state(), "retries", spin.at("spinlocks").or("4096"))
	}
	if timer := pick("synictimer"); timer != nil {
		direct := ""
		if d := timer.at("direct"); d != nil {
			direct = element("direct", "", "state", d.state())
		}
		text += element("stimer", direct, "state", timer.state())
	}
	if vendor := pick("vendorid").at("vendorid").word(); vendor != nil {
		text += element("vendor_id", "", "state", "on", "value", *vendor)
	}
	return element("hyperv", text, "mode", "custom")
}

// identity is what the guest reads of its computer: serial number, and the chassis' label.
func (c *converter) identity() string {
	all := ""
	for _, of := range [][]string{
		{"system", "firmware", "serial"}, {"chassis", "chassis", "manufacturer", "version", "serial", "asset", "sku"},
	} {
		entries := ""
		for _, name := range of[2:] {
			if text := c.domain.at(of[1] + "." + name).word(); text != nil {
				entries += element("entry", escaped(*text), "name", name)
			}
		}
		if entries != "" {
			all += element(of[0], entries)
		}
	}
	if all == "" {
		return ""
	}
	return element("sysinfo", all, "type", "smbios") + element("os", element("smbios", "", "mode", "sysinfo"))
}

// devices are those that are neither disks nor interfaces.
func (c *converter) devices() {
	d := c.domain.at("devices")
	if !d.at("autoattachSerialConsole").isOff() {
		c.to["serial"] = values{}
	}
	text := c.inputs(d)
	if sound := c.first(c.domain, "devices.sound|preference.devices.preferredSoundModel"); sound != nil {
		sound.skip("name")
		text += element("sound", "", "model", cmp.Or(sound.text, sound.at("model").or("ich9")))
		sound.read = true
	}
	for _, panics := range d.each("panicDevices") {
		text += element("panic", "", "model", panics.at("model").or("isa"))
		panics.read = true
	}
	if c.first(c.domain, "devices.autoattachMemBalloon|preference.devices.preferredAutoattachMemBalloon").isOff() {
		text += element("memballoon", "", "model", "none")
	}
	if d.at("autoattachVSOCK").isOn() {
		text += element("vsock", element("cid", "", "auto", "yes"), "model", "virtio")
	}
	if text != "" {
		c.to["devices_xml"] = text
	}
	for _, from := range []*node{d, c.instance} {
		for _, device := range append(from.each("gpus"), from.each("hostDevices")...) {
			name, all := device.at("name").or(""), c.to.below("host_devices")
			if name == "" || device.at("deviceName") == nil || all[name] != nil {
				device.refuse("it has no name or deviceName, or the name of another device")
			}
			all[name] = device.at("deviceName").or("")
		}
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe"} {
		if c.spec.set(probe+".guestAgentPing") != nil {
			c.to["guest_agent"] = true
			if probe == "readinessProbe" {
				c.to.put("wait_for/agent", true)
			}
		}
	}
}

// inputs are pointers and the like.
func (c *converter) inputs(d *node) (text string) {
	for _, input := range d.each("inputs") {
		input.skip("name")
		text += element("input", "", "type", input.at("type").or("tablet"), "bus", input.at("bus").or("usb"))
	}
	attached := c.first(c.domain, "devices.autoattachInputDevice|preference.devices.preferredAutoattachInputDevice").isOn()
	if attached && text == "" {
		of := c.preference.at("devices")
		text = element("input", "", "type", of.at("preferredInputType").or("tablet"), "bus", of.at("preferredInputBus").or("usb"))
	}
	return text
}

// multiQueue is one queue for each processor, if the devices of the guest have several.
func (c *converter) multiQueue(own, preferred string) any {
	if c.first(c.domain, "devices."+own+"|preference.devices."+preferred).isOn() {
		return c.to.below("cpu")["vcpus"]
	}
	return nil
}

// interfaces are those of the manifest, or else one of the pods' network.
func (c *converter) interfaces() {
	networks := map[string]*node{}
	for _, network := range c.spec.each("networks") {
		name := network.at("name").or("")
		if networks[name] != nil {
			network.refuse("the network %.60q is there twice", name)
		}
		networks[name] = network
	}
	all, queues := c.domain.each("devices.interfaces"), c.multiQueue("networkInterfaceMultiqueue", "preferredNetworkInterfaceMultiQueue")
	if !c.domain.at("devices.autoattachPodInterface").isOff() && all == nil && !c.isPart() {
		c.to.below("interfaces")["default"] = values{"pod": true, "binding": "masquerade"}
		c.card(nil, c.to.below("interfaces").below("default"), queues)
	}
	var names []string
	for _, from := range all {
		name := from.at("name").or("")
		if names = append(names, name); !slices.IsSorted(names) {
			from.leave("interfaces are in the order of their names here, and the guest may count them otherwise")
		}
		if networks[name] == nil {
			cmp.Or(from.at("name"), from).refuse("there is no network %.60q", name)
			continue
		}
		if from.at("state").or("") != "absent" {
			c.networkInterface(from, networks[name], queues, c.to.below("interfaces").below(name))
		}
	}
}

// card is the emulated device. Only those of virtio have several queues.
func (c *converter) card(from *node, to values, queues any) {
	c.carry(from, to, row{"model|preference.devices.preferredInterfaceModel", "model", "word"})
	if model, is := to["model"].(*string); !is || strings.HasPrefix(*model, "virtio") {
		to.put("queues", queues)
	}
}

// networkInterface is an interface of a network. Which of the host's networks stands for the cluster's is not in a manifest.
func (c *converter) networkInterface(from, network *node, queues any, to values) {
	c.carry(from, to,
		row{"bootOrder", "boot_order", "number"}, row{"state", "link", "up down"}, row{"binding.name", "binding", "word"})
	c.card(from, to, queues)
	if mac := from.at("macAddress").word(); mac != nil {
		to["mac"] = strings.ReplaceAll(*mac, "-", ":")
	}
	for _, binding := range []string{"masquerade", "bridge", "sriov", "macvtap", "slirp", "passt"} {
		if found := from.set(binding); found != nil && to["binding"] != nil {
			found.refuse("it excludes %v", to["binding"])
		} else if found != nil {
			to["binding"] = binding
		}
	}
	switch multus := network.at("multus.networkName").word(); {
	case network.set("pod") != nil:
		to["pod"] = true
	case multus == nil:
		network.refuse("it is neither pod nor multus")
	case strings.Contains(*multus, "/"):
		to["multus"] = *multus
	default:
		to["multus"] = c.namespace + "/" + *multus
	}
	network.skip("multus.default")
}
