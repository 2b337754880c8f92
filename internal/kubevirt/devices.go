package kubevirt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// hyperv are the enlightenments of Windows that are on or off, which libvirt calls the same.
const hyperv = "relaxed vapic vpindex runtime synic reset frequencies reenlightenment tlbflush ipi evmcs"

// features are those of the emulated computer that have no attribute.
func (c *converter) features() {
	for _, of := range []string{"features.acpi|preference.features.preferredAcpi", "features.apic|preference.features.preferredApic"} {
		if n := c.first(c.domain, of); n.isOff() { // each machine has both
			cmp.Or(n.at("enabled"), n).refuse("a machine without it could not be shut down")
		}
	}
	firmware, _ := c.to["firmware"].(values)
	if smm := c.first(c.domain, "features.smm|preference.features.preferredSmm"); smm.isOff() && firmware["secure_boot"] == true {
		cmp.Or(smm.at("enabled"), smm).refuse("secure boot needs it")
	}
	all := values{}
	c.carry(c.domain, all,
		row{"features.kvm.hidden|preference.features.preferredKvm.hidden", "features/kvm/hidden/state", state},
		row{"features.pvspinlock|preference.features.preferredPvspinlock", "features/pvspinlock/state", state})
	if own, preferred := c.domain.set("features.hyperv"), c.preference.set("features.preferredHyperv"); cmp.Or(own, preferred) != nil {
		c.enlightenments(all.below("features").below("hyperv"))
	}
	c.identity(all)
	if _, text := all.xml(); text != "" {
		c.to["domain_xml"] = text
	}
}

// enlightenments are those of Windows, of the machine or of its preference, one by one.
func (c *converter) enlightenments(to values) {
	to["mode"] = "custom"
	carry := func(name, element string, as func(*node) any) {
		c.carry(c.domain, to, row{fmt.Sprintf("features.hyperv.%s|preference.features.preferredHyperv.%[1]s", name), element, as})
	}
	for name := range strings.FieldsSeq(hyperv) {
		carry(name, name+"/state", state)
	}
	carry("spinlocks", "spinlocks", func(n *node) any {
		return values{"state": n.state(), "retries": n.at("spinlocks").or("4096")}
	})
	carry("synictimer", "stimer", func(n *node) any {
		timer := values{"state": n.state()}
		if direct := n.at("direct"); direct != nil {
			timer.put("direct/state", direct.state())
		}
		return timer
	})
	carry("vendorid", "vendor_id", func(n *node) any {
		if name := n.at("vendorid").word(); name != nil {
			return values{"state": "on", "value": *name}
		}
		return nil
	})
}

// identity is what the guest reads of its computer: serial number, and the chassis' label.
func (c *converter) identity(to values) {
	for _, of := range [][]string{
		{"system", "firmware", "serial"}, {"chassis", "chassis", "manufacturer", "version", "serial", "asset", "sku"},
	} {
		var entries []values
		for _, name := range of[2:] {
			if text := c.domain.at(of[1] + "." + name).word(); text != nil {
				entries = append(entries, values{"name": name, "": *text})
			}
		}
		if entries != nil {
			to.put("sysinfo/type", "smbios")
			to.put("sysinfo/"+of[0]+"/entry", entries)
			to.put("os/smbios/mode", "sysinfo")
		}
	}
}

// devices are those that are neither disks nor interfaces.
func (c *converter) devices() {
	d, all := c.domain.at("devices"), values{}
	if !d.at("autoattachSerialConsole").isOff() {
		c.to["serial"] = values{}
	}
	all["input"] = c.inputs(d)
	if sound := c.first(c.domain, "devices.sound|preference.devices.preferredSoundModel"); sound != nil {
		sound.skip("name")
		all.put("sound/model", cmp.Or(sound.text, sound.at("model").or("ich9")))
		sound.read = true
	}
	var panics []values
	for _, from := range d.each("panicDevices") {
		from.read = true
		panics = append(panics, values{"model": from.at("model").or("isa")})
	}
	all["panic"] = panics
	if c.first(c.domain, "devices.autoattachMemBalloon|preference.devices.preferredAutoattachMemBalloon").isOff() {
		all.put("memballoon/model", "none")
	}
	if d.at("autoattachVSOCK").isOn() {
		all["vsock"] = values{"model": "virtio", "cid": values{"auto": "yes"}}
	}
	if _, text := all.xml(); text != "" {
		c.to["devices_xml"] = text
	}
	for _, device := range slices.Concat(d.each("gpus"), d.each("hostDevices"), c.instance.each("gpus"), c.instance.each("hostDevices")) {
		name, all := device.at("name").or(""), c.to.below("host_devices")
		if name == "" || device.at("deviceName") == nil || all[name] != nil {
			device.refuse("it has no name or deviceName, or the name of another device")
		}
		all[name] = device.at("deviceName").or("")
	}
	ready := c.spec.set("readinessProbe.guestAgentPing")
	if cmp.Or(ready, c.spec.set("livenessProbe.guestAgentPing")) != nil {
		c.to["guest_agent"] = true
	}
	if ready != nil {
		c.to.put("wait_for/agent", true)
	}
}

// inputs are pointers and the like.
func (c *converter) inputs(d *node) (all []values) {
	for _, input := range d.each("inputs") {
		input.skip("name")
		all = append(all, values{"type": input.at("type").or("tablet"), "bus": input.at("bus").or("usb")})
	}
	attached := c.first(c.domain, "devices.autoattachInputDevice|preference.devices.preferredAutoattachInputDevice").isOn()
	if of := c.preference.at("devices"); attached && all == nil {
		return []values{{"type": of.at("preferredInputType").or("tablet"), "bus": of.at("preferredInputBus").or("usb")}}
	}
	return all
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
	c.carry(from, to, row{"model|preference.devices.preferredInterfaceModel", "model", word})
	if model, is := to["model"].(string); !is || strings.HasPrefix(model, "virtio") {
		to.put("queues", queues)
	}
}

// networkInterface is an interface of a network. Which of the host's networks stands for the cluster's is not in a manifest.
func (c *converter) networkInterface(from, network *node, queues any, to values) {
	c.carry(from, to,
		row{"bootOrder", "boot_order", number}, row{"state", "link", oneOf("up", "down")})
	c.card(from, to, queues)
	if mac := from.at("macAddress").word(); mac != nil {
		to["mac"] = strings.ReplaceAll(*mac, "-", ":")
	}
	if binding := from.only("binding", "masquerade", "bridge", "sriov", "macvtap", "slirp", "passt"); binding != nil {
		if to["binding"] = binding.name; binding.name == "binding" {
			to["binding"] = binding.named("plugin")
		}
	}
	of := network.only("pod", "multus")
	switch multus := of.at("networkName").or(""); {
	case of == nil || of.name == "multus" && multus == "":
		network.refuse("it is neither pod nor multus")
	case of.name == "pod":
		to["pod"] = true
	case strings.Contains(multus, "/"):
		to["multus"] = multus
	default:
		to["multus"] = c.namespace + "/" + multus
	}
	network.skip("multus.default")
}
