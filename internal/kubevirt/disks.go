package kubevirt

import (
	"cmp"
	"slices"
)

// prefixes begin libvirt's names of disks on a bus.
var prefixes = map[string]string{"virtio": "vd", "sata": "sd", "scsi": "sd", "usb": "sd", "ide": "hd"}

// ofDisk are fields of a disk that become attributes as they are.
var ofDisk = []row{
	{"bootOrder", "boot_order", number},
	{"serial", "serial", word},
	{"cache|preference.devices.preferredDiskCache", "cache", word},
	{"io|preference.devices.preferredDiskIO", "io", oneOf("threads", "native", "default")},
	{"errorPolicy", "error_policy", word},
	{"blockSize.custom.logical", "logical_block_size", number},
	{"blockSize.custom.physical", "physical_block_size", number},
	{"rotationRate", "rotation_rate", number},
}

// diskReader reads the disks of a machine, in the order of the manifest, which is that of their names in the guest.
type diskReader struct {
	*converter
	volumes map[string]*node
	// used are the names of volumes that a disk or a filesystem has.
	used map[string]bool
	// named counts the disks by the prefix of their names, and threads those with an I/O thread.
	named   map[string]int
	threads int64
	// isUnordered is set until the first disk is there that is no drive: the guest boots from it, unless the manifest has an order.
	isUnordered bool
}

// readDisks reads the disks of the manifest, and makes one of each volume that is neither a disk's nor a filesystem's.
func (c *converter) readDisks() {
	r := &diskReader{converter: c, volumes: map[string]*node{}, used: map[string]bool{}, named: map[string]int{}}
	volumes := c.spec.each("volumes")
	for _, volume := range volumes {
		name := volume.at("name").or("")
		if r.volumes[name] != nil {
			volume.refuse("the volume %.60q is there twice", name)
		}
		r.volumes[name] = volume
	}
	r.filesystems()
	all := c.domain.each("devices.disks")
	hasOrder := func(n *node) bool { return n.at("bootOrder") != nil }
	r.isUnordered = !slices.ContainsFunc(append(c.domain.each("devices.interfaces"), all...), hasOrder)
	for _, from := range all {
		r.disk(from)
	}
	for _, volume := range volumes {
		if name := volume.at("name"); name != nil && !r.used[name.text] {
			r.disk(&node{parent: volume.parent, name: volume.name, line: volume.line, fields: map[string]*node{"name": name}})
		}
	}
}

// disk adds a disk with its volume.
func (r *diskReader) disk(from *node) {
	at := cmp.Or(from.at("name"), from.at("source.name"), from.at("source.pvc.claimname"))
	name, disks := at.or("disk"), r.to.below("disks")
	if at == nil && from.at("source") == nil {
		from.refuse("it has no name")
		return
	}
	if disks[name] != nil {
		at.refuse("the disk %.60q is there twice", name)
		return
	}
	device, options := r.device(from)
	volume, ephemeral := r.source(from, name, device)
	if volume == nil {
		from.skip() // it is said of its volume
		return
	}
	if device == "lun" && volume["disk"] != nil {
		device = "disk"
		if r.isOf(volume, "container_image") {
			options.refuse("a lun is a block device of a claim, and no file")
		}
		options.leave("what the guest writes is in a file, which is a disk and no lun")
	}
	to := disks.below(name)
	to["device"] = device
	if len(volume) > 0 {
		to["volume"] = volume
	}
	if ephemeral && device == "disk" {
		to["ephemeral"] = true
	}
	if r.carry(from, to, ofDisk...); from.at("io").or("") == "default" {
		delete(to, "io")
	}
	r.bus(from, to, options)
	if device == "disk" && to["bus"] == "sata" && r.isOf(volume, "cloud_init", "files") {
		to["device"] = "cdrom"
		options.leave("a seed is read-only, and so a cdrom on sata")
	}
	r.readOnly(from, options, to)
	if from.at("solidState").isOn() {
		to["rotation_rate"] = 1
	}
	if to["bus"] == "virtio" && device == "disk" {
		r.threading(from, to)
	}
	if r.isUnordered && (device == "disk" || device == "lun") {
		r.isUnordered, to["boot_order"] = false, 1
	}
}

// isOf reports whether a volume is a disk of the host with a source of one of some kinds.
func (r *diskReader) isOf(volume values, kinds ...string) bool {
	name, is := volume["disk"].(string)
	return is && slices.ContainsFunc(kinds, func(kind string) bool {
		source, _ := r.result.below("disks").below(name)["source"].(values)
		return source[kind] != nil
	})
}

// device is what the volume is for the guest, with its options.
func (r *diskReader) device(from *node) (device string, options *node) {
	if options = from.only("disk", "lun", "cdrom", "floppy"); options == nil {
		return "disk", nil
	}
	return options.name, options
}

// preferredBus are the preferences of a bus, by the device.
var preferredBus = map[string]string{"disk": "preferredDiskBus", "lun": "preferredLunBus", "cdrom": "preferredCdromBus"}

// bus is the manifest's, or KubeVirt's default, with libvirt's name of the disk on it.
func (r *diskReader) bus(from *node, to values, options *node) {
	device, otherwise := to["device"].(string), "virtio"
	if device == "floppy" {
		return
	}
	if device == "cdrom" {
		otherwise = "scsi"
	}
	if r.isAMD64() {
		otherwise = "sata"
	}
	at := cmp.Or(options.at("bus"), from.at("target.bus"), r.preference.at("devices."+preferredBus[device]))
	bus := at.or(otherwise)
	switch {
	case device == "lun":
		if at != nil && bus != "scsi" {
			at.leave("a lun is on scsi")
		}
		bus = "scsi"
	case prefixes[bus] == "" || device == "cdrom" && (bus == "virtio" || bus == "usb"):
		at.refuse("%.40q is no bus of a %s: take sata or scsi", bus, device)
	}
	to["bus"] = bus
	prefix := prefixes[bus]
	if n := r.named[prefix]; n < 26 {
		to["target"] = prefix + string(rune('a'+n))
	}
	r.named[prefix]++
}

// readOnly is what the guest may not write to, whatever the volume's access mode says.
func (r *diskReader) readOnly(from, options *node, to values) {
	at := cmp.Or(options.at("readonly"), options.at("readOnly"))
	volume, _ := to["volume"].(values)
	binding, _ := volume["binding"].(string)
	shared := r.result.below("bindings")[binding]
	switch device := to["device"]; {
	case at == nil && device == "disk" && to["bus"] == "sata" && shared != nil && shared.(values)["access_mode"] == "read-shared":
		cmp.Or(options, from).refuse("no disk on sata can be read-only: take bus virtio or scsi")
	case at == nil:
	case device == "cdrom" || device == "floppy":
		if at.isOff() {
			at.leave("drives are always read-only")
		}
		at.flag()
	case at.isOn() && (device == "lun" || to["bus"] == "sata"):
		at.refuse("no lun, and no disk on sata, can be read-only: take bus virtio or scsi")
	default:
		to.put("read_only", at.flag())
	}
}

// threading is which I/O thread and how many queues a virtio disk has.
func (r *diskReader) threading(from *node, to values) {
	policy := r.first(r.domain, "ioThreadsPolicy|instancetype.ioThreadsPolicy")
	isShared := policy.or("") == "shared"
	if policy != nil && !isShared {
		policy.leave("a disk has a thread of its own with dedicatedIOThread")
	}
	if r.first(from, "dedicatedIOThread|preference.devices.preferredDiskDedicatedIoThread").isOn() {
		r.threads++
		to["iothread"] = r.threads + 1
	} else if isShared {
		to["iothread"] = 1
	}
	to.put("queues", r.multiQueue("blockMultiQueue", "preferredBlockMultiQueue"))
}

// filesystems are claims whose folders the guest mounts.
func (r *diskReader) filesystems() {
	for _, from := range r.domain.each("devices.filesystems") {
		name := from.at("name").or("")
		volume, claim := r.volumes[name], r.volumes[name].at("persistentVolumeClaim")
		if from.set("virtiofs") == nil || volume == nil {
			from.refuse("it is no virtiofs of one of the volumes")
			continue
		}
		if r.used[name] = true; claim == nil {
			from.leave("only the folder of a claim can be shared")
			volume.leave("it is a filesystem's")
			continue
		}
		shared := r.to.below("filesystems").below(name)
		shared["target"], shared["volume"] = name, r.claim(claim, name, r.namespace, claim.at("claimName"), "write-shared")
		r.result.below("bindings").below(name).put("source/persistent_volume_claim/shared_folder", true)
	}
}
