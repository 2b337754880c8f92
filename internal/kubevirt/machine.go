package kubevirt

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// ofObject are fields of the object, and ofDomain of the domain in it, that become attributes of the machine as they are.
var (
	ofObject = []row{
		{"metadata.name", "name", word},
		{"metadata.generateName", "name_prefix", word},
		{"metadata.namespace", "namespace", word},
		{"spec.running", "running", boolean},
	}
	ofDomain = []row{
		{"machine.type|preference.machine.preferredMachineType", "machine/type", word},
		{"memory.maxGuest|instancetype.memory.maxGuest", "max_memory", size},
		{"memory.hugepages|instancetype.memory.hugepages", "memory_backing", present},
		{"memory.hugepages.pageSize|instancetype.memory.hugepages.pageSize", "memory_backing/huge_page_size", size},
		{"devices.tpm|preference.devices.preferredTPM", "tpm", present},
		{"devices.rng|preference.devices.preferredRng", "rng", present},
		{"devices.watchdog.i6300esb", "watchdog/model", always("i6300esb")},
		{"devices.watchdog.i6300esb.action", "watchdog/action", word},
		{"devices.autoattachGraphicsDevice|preference.devices.preferredAutoattachGraphicsDevice", "graphics/type", always("vnc")},
		{"devices.video.type|preference.devices.preferredVideoType", "video/model", word},
		{"firmware.bootloader.bios", "firmware/type", always("bios")},
	}
)

// yielding are preferences that count where the machine, or a disk of it, has no value of its own.
var yielding = []string{
	"devices.preferredDiskBus", "devices.preferredCdromBus", "devices.preferredLunBus", "devices.preferredInterfaceModel",
	"devices.preferredDiskCache", "devices.preferredDiskIO", "devices.preferredDiskDedicatedIoThread",
	"devices.preferredBlockMultiQueue", "devices.preferredNetworkInterfaceMultiQueue", "devices.preferredInputBus",
	"devices.preferredInputType", "firmware.preferredEfi", "firmware.preferredUseEfi", "firmware.preferredUseSecureBoot",
	"clock.preferredClockOffset.utc", "clock.preferredClockOffset.timezone", "cpu.preferredCPUTopology",
}

// archs are libvirt's names of Kubernetes' architectures.
var archs = map[string]string{"amd64": "x86_64", "arm64": "aarch64", "s390x": "s390x", "ppc64le": "ppc64le"}

// isAMD64 reports whether the machine is what KubeVirt assumes of one: a q35, whose disks are on sata.
func (c *converter) isAMD64() bool {
	arch := c.spec.at("architecture")
	return arch == nil || arch.text == "amd64"
}

// hardware is the emulated computer with its firmware.
func (c *converter) hardware() {
	if arch := c.spec.at("architecture").one("amd64", "arm64", "s390x", "ppc64le"); arch != nil {
		c.to.put("machine/arch", archs[*arch])
	}
	if machine := c.to.below("machine"); machine["type"] == nil && c.isAMD64() {
		machine["type"] = "q35"
		for _, disk := range c.domain.each("devices.disks") {
			if disk.at("floppy") != nil {
				machine["type"] = "pc" // a q35 has no floppy drive
			}
		}
	}
	c.domain.skip("devices.tpm.persistent", "devices.watchdog.name", "firmware.bootloader.efi.persistent") // all state is kept
	efi := c.domain.at("firmware.bootloader").only("efi", "bios")
	if efi == nil {
		efi = c.preference.set("firmware.preferredEfi")
		if useEFI := c.preference.at("firmware.preferredUseEfi"); useEFI.isOn() {
			efi = cmp.Or(efi, useEFI)
		}
	} else if efi.name == "bios" {
		efi = nil
	}
	secure := cmp.Or(efi.at("secureBoot"), c.preference.at("firmware.preferredUseSecureBoot"))
	if arm := c.spec.at("architecture"); arm.or("") == "arm64" && c.to["firmware"] == nil { // it has nothing else, and no secure boot
		c.to["firmware"] = values{"type": "efi", "secure_boot": secure.isOn()}
	} else if efi != nil {
		c.to["firmware"] = values{"type": "efi", "secure_boot": !secure.isOff()}
	}
}

// processors are those of the machine, or of its instance type: sockets, unless the manifest arranges them.
func (c *converter) processors() {
	parts, guest := map[string]int64{}, c.instance.at("cpu.guest")
	for _, name := range []string{"sockets", "cores", "threads"} {
		if at := c.domain.at("cpu." + name); at != nil {
			parts[name] = at.processors(at.number())
			if guest != nil {
				at.refuse("the processors are those of the instance type")
			}
		}
	}
	switch {
	case len(parts) > 0:
	case guest != nil:
		n := guest.processors(guest.number())
		part, cores := c.arrangement(n)
		parts["cores"] = cores
		parts[part] = n / cores
	default:
		at := c.first(c.domain, "resources.limits.cpu|resources.requests.cpu")
		parts["sockets"] = at.processors(at.whole())
	}
	sockets, cores, threads := max(parts["sockets"], 1), max(parts["cores"], 1), max(parts["threads"], 1)
	to := c.to.below("cpu")
	to["vcpus"] = sockets * cores * threads
	if at := c.first(c.domain, "cpu.maxSockets|instancetype.cpu.maxSockets"); at != nil {
		most := at.processors(at.number())
		if most < sockets {
			at.refuse("it is less than the sockets that the machine has")
		}
		sockets = most
		to["max_vcpus"] = sockets * cores * threads
	}
	to["topology"] = values{"sockets": sockets, "cores": cores, "threads": threads}
	c.model(to)
}

// mostProcessors is more than any host has, and keeps products of them small.
const mostProcessors = 8192

// processors are some number of them, 1 by default.
func (n *node) processors(number *int64) int64 {
	if number == nil {
		return 1
	}
	if *number < 1 || *number > mostProcessors {
		n.refuse("%d is no number of processors from 1 to %d", *number, mostProcessors)
	}
	return *number
}

// whole is an amount of processors, rounded up.
func (n *node) whole() *int64 {
	text := n.word()
	if text == nil {
		return nil
	}
	amount, err := tfvalue.ParseQuantity(*text)
	if err != nil {
		n.refuse("%.40q is no number of processors", *text)
		return nil
	}
	return new(amount.Value())
}

// arrangement is what the processors of an instance type are: sockets, cores or threads, or spread over sockets of some cores.
func (c *converter) arrangement(processors int64) (part string, cores int64) {
	at := c.preference.at("cpu.preferredCPUTopology")
	ratio := *cmp.Or(c.first(c.preference, "cpu.spreadOptions.ratio|preferSpreadSocketToCoreRatio").number(), new(int64(2)))
	switch of := strings.ToLower(strings.TrimPrefix(at.or("sockets"), "prefer")); {
	case of == "sockets" || of == "cores" || of == "threads":
		return of, 1
	case of == "spread" && ratio > 0 && processors%ratio == 0:
		return "sockets", ratio
	}
	at.leave("each processor is a socket")
	return "sockets", 1
}

// model is that of the processor, with its features. KubeVirt's is the host's.
func (c *converter) model(to values) {
	for _, f := range append(c.preference.each("cpu.preferredCPUFeatures"), c.domain.each("cpu.features")...) {
		f.at("policy").one("force", "require", "optional", "disable", "forbid")
		to.below("features")[f.at("name").or("?")] = f.at("policy").or("require")
	}
	to["mode"] = "host-model"
	if arch := c.spec.at("architecture"); arch.or("") == "arm64" {
		to["mode"] = "host-passthrough"
	}
	switch model := c.first(c.domain, "cpu.model|instancetype.cpu.model").word(); {
	case model == nil:
	case *model == "host-model" || *model == "host-passthrough":
		to["mode"] = *model
	default:
		to["mode"], to["model"] = "custom", *model
	}
}

// memory is what the guest sees. Without that it is what the pod requests.
func (c *converter) memory() {
	guest, of := c.domain.at("memory.guest"), c.instance.at("memory.guest")
	if guest != nil && of != nil {
		guest.refuse("the memory is that of the instance type")
	}
	c.carry(c.domain, c.to,
		row{"memory.guest|instancetype.memory.guest|resources.requests.memory|resources.limits.memory", "memory", size})
	if c.to["memory_backing"] != nil {
		c.to.put("memory_backing/huge_pages", true)
	}
}

// timers are libvirt's names of timers.
var timers = map[string]string{"hpet": "hpet", "pit": "pit", "rtc": "rtc", "kvm": "kvmclock", "hyperv": "hypervclock"}

// clock has the timers of the machine, or of its preference.
func (c *converter) clock() {
	of := c.preference.at("clock.preferredClockOffset")
	if own := c.domain.at("clock"); own.at("utc") != nil || own.at("timezone") != nil {
		of = own
	}
	if zone := of.at("timezone").word(); zone != nil {
		c.to["clock"] = values{"offset": "timezone", "timezone": *zone}
	} else if of.set("utc") != nil {
		c.to["clock"] = values{"offset": "utc"}
	}
	all := c.first(c.domain, "clock.timer|preference.clock.preferredTimer")
	for _, name := range slices.Sorted(maps.Keys(timers)) {
		if t := all.set(name); t != nil {
			to := c.to.below("clock").below("timers").below(timers[name])
			to["present"] = !t.at("present").isOff()
			to.put("tickpolicy", t.at("tickPolicy").one("delay", "catchup", "merge", "discard"))
		}
	}
}
