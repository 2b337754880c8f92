package virtualmachine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func TestDefaultBus(t *testing.T) {
	none, unknown, of := types.StringNull(), types.StringUnknown(), types.StringValue
	for name, c := range map[string]struct{ device, machineType, arch, want types.String }{
		"disk on pc":                          {of("disk"), of("pc"), none, of("virtio")},
		"lun on q35":                          {of("lun"), of("q35"), none, of("scsi")},
		"floppy on pc":                        {of("floppy"), of("pc"), none, of("fdc")},
		"floppy on what is not known":         {of("floppy"), unknown, none, of("fdc")},
		"disk on q35":                         {of("disk"), of("q35"), none, of("virtio")},
		"disk on what is not known":           {of("disk"), unknown, unknown, of("virtio")},
		"cdrom on pc":                         {of("cdrom"), of("pc"), none, of("ide")},
		"cdrom on pc by its full name":        {of("cdrom"), of("pc-i440fx-7.2"), of("x86_64"), of("ide")},
		"cdrom on libvirt's choice":           {of("cdrom"), none, none, unknown},
		"cdrom on libvirt's choice on x86":    {of("cdrom"), none, of("i686"), unknown},
		"cdrom on libvirt's choice elsewhere": {of("cdrom"), none, of("aarch64"), of("scsi")},
		"cdrom on q35":                        {of("cdrom"), of("pc-q35-7.2"), of("x86_64"), of("sata")},
		"cdrom on q35 of unknown arch":        {of("cdrom"), of("q35"), unknown, of("sata")},
		"cdrom on virt":                       {of("cdrom"), of("virt"), of("aarch64"), of("scsi")},
		"cdrom on what is not known":          {of("cdrom"), unknown, none, unknown},
		"cdrom on pc of unknown arch":         {of("cdrom"), of("pc"), unknown, unknown},
		"cdrom on what is not known on arm":   {of("cdrom"), unknown, of("aarch64"), of("scsi")},
		"what is not known on q35":            {unknown, of("q35"), none, unknown},
	} {
		if got := defaultBus(c.device, machineModel{Type: c.machineType, Arch: c.arch}); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// having is a model with disks d0, d1 and so on. Each is a disk on virtio without other known attributes, to which its change is applied.
func having(t *testing.T, change ...func(*diskModel)) model {
	t.Helper()
	disks := map[string]diskModel{}
	for n, f := range change {
		d := diskModel{
			Volume: types.ObjectUnknown(tfvalue.VolumeTypes), Device: types.StringValue(domainxml.Fixed), Bus: types.StringValue("virtio"),
			IOTune: types.ObjectNull(ioTuneTypes),
		}
		f(&d)
		disks[fmt.Sprintf("d%d", n)] = d
	}
	m, diags := types.MapValueFrom(t.Context(), types.ObjectType{AttrTypes: diskTypes}, disks)
	if diags.HasError() {
		t.Fatal(diags)
	}
	return model{Disks: m, Host: types.StringValue("node-a")}
}

// limited sets limits by their names; -1 is one that is not known yet.
func limited(pairs ...any) func(*diskModel) {
	values := map[string]attr.Value{}
	for _, name := range domainxml.IOTuneNames {
		values[name] = types.Int64Null()
	}
	for n := 0; n < len(pairs); n += 2 {
		if values[pairs[n].(string)] = types.Int64Value(int64(pairs[n+1].(int))); pairs[n+1] == -1 {
			values[pairs[n].(string)] = types.Int64Unknown()
		}
	}
	return func(d *diskModel) { d.IOTune = types.ObjectValueMust(ioTuneTypes, values) }
}

// on sets device and bus of a disk, and applies more changes after that.
func on(device, bus string, more ...func(*diskModel)) func(*diskModel) {
	return func(d *diskModel) {
		d.Device, d.Bus = types.StringValue(device), types.StringValue(bus)
		for _, f := range more {
			f(d)
		}
	}
}

func times(n int, f func(*diskModel)) (all []func(*diskModel)) {
	for range n {
		all = append(all, f)
	}
	return all
}

// refusal checks that there is one error with that text at a disk's attribute; or none where attribute is empty.
func refusal(t *testing.T, diags diag.Diagnostics, attribute, says string) {
	t.Helper()
	if attribute == "" {
		if diags.HasError() {
			t.Errorf("refused: %v", diags)
		}
		return
	}
	if len(diags) != 1 {
		t.Fatalf("%v, want one error", diags)
	}
	at, ok := diags[0].(diag.DiagnosticWithPath)
	if !ok || !strings.HasSuffix(at.Path().String(), "."+attribute) || !strings.Contains(diags[0].Summary()+": "+diags[0].Detail(), says) {
		t.Errorf("%v, want %s: %s", diags, attribute, says)
	}
}

func TestCheckDevices(t *testing.T) {
	pc, q35 := machineModel{Type: types.StringValue("pc")}, machineModel{Type: types.StringValue("q35")}
	virt := machineModel{Type: types.StringValue("virt"), Arch: types.StringValue("aarch64")}
	unsure := machineModel{Type: types.StringUnknown()}
	disk, lun, cdrom, floppy := domainxml.Fixed, domainxml.LUN, domainxml.CDROM, domainxml.Floppy
	text, size := types.StringValue, types.Int64Value
	serial := func(s string) func(*diskModel) { return func(d *diskModel) { d.Serial = text(s) } }
	target := func(s string) func(*diskModel) { return func(d *diskModel) { d.Target = text(s) } }
	blocks := func(logical, physical types.Int64) func(*diskModel) {
		return func(d *diskModel) { d.LogicalBlockSize, d.PhysicalBlockSize = logical, physical }
	}
	ephemeral := func(d *diskModel) { d.Ephemeral = types.BoolValue(true) }
	readOnly := func(d *diskModel) { d.ReadOnly = types.BoolValue(true) }
	thread := func(d *diskModel) { d.IOThread = size(1) }
	empty := func(d *diskModel) { d.Volume = types.ObjectNull(tfvalue.VolumeTypes) }
	queues := func(d *diskModel) { d.Queues = size(2) }
	wwn := func(d *diskModel) { d.WWN = text("5000c50015ea71ab") }
	rotates := func(d *diskModel) { d.RotationRate = size(7200) }
	zeroes := func(d *diskModel) { d.DetectZeroes = text("on") }
	nowhere := func(d *diskModel) { d.Bus = types.StringUnknown() }
	for name, c := range map[string]struct {
		disks         []func(*diskModel)
		machine       machineModel
		refused, says string
	}{
		"four on IDE":             {times(4, on(cdrom, "ide")), pc, "", ""},
		"five on IDE":             {times(5, on(cdrom, "ide")), pc, "bus", "Disk d4 is on the bus ide, where a machine has 4 devices at most"},
		"five on sata":            {times(5, on(cdrom, "sata")), pc, "", ""},
		"IDE on q35":              {times(1, on(disk, "ide")), q35, "bus", "this machine (q35) has none"},
		"IDE on virt":             {times(1, on(disk, "ide")), virt, "bus", "this machine (aarch64 virt) has none"},
		"IDE on what isn't known": {times(1, on(disk, "ide")), unsure, "", ""},
		"two floppies":            {times(2, on(floppy, fdc)), pc, "", ""},
		"three floppies":          {times(3, on(floppy, fdc)), pc, "bus", "2 devices at most"},
		"a floppy on q35":         {times(1, on(floppy, fdc)), q35, "device", "No floppy controller: Disk d0 is on the bus fdc, which only a pc has"},
		"a floppy on sata":        {times(1, on(floppy, "sata")), pc, "bus", "only a floppy is on fdc, and on nothing else"},
		"a disk on fdc":           {times(1, on(disk, fdc)), pc, "bus", "only a floppy is on fdc"},
		"a drive on virtio":       {times(1, on(cdrom, "virtio")), pc, "bus", "no such drives on virtio"},
		"a drive on usb":          {times(1, on(cdrom, "usb")), pc, "bus", "its guest would see a disk"},
		"a unit on scsi":          {times(1, on(lun, "scsi")), q35, "", ""},
		"a unit on virtio":        {times(1, on(lun, "virtio")), pc, "bus", "A logical unit is on SCSI"},
		"an ephemeral drive":      {times(1, on(floppy, fdc, ephemeral)), pc, "ephemeral", "Leave ephemeral out"},

		"an empty drive":           {times(1, on(cdrom, "ide", empty)), pc, "", ""},
		"an empty floppy":          {times(1, on(floppy, fdc, empty)), pc, "", ""},
		"an empty disk":            {times(1, on(disk, "virtio", empty)), pc, "volume", "only a cdrom or a floppy may be empty"},
		"an empty unit":            {times(1, on(lun, "scsi", empty)), pc, "volume", "only a cdrom or a floppy may be empty"},
		"a read-only disk":         {times(1, on(disk, "usb", readOnly)), pc, "", ""},
		"a read-only drive":        {times(1, on(cdrom, "sata", readOnly)), pc, "", ""},
		"a read-only disk on sata": {times(1, on(disk, "sata", readOnly)), pc, "read_only", "Disk d0 is a disk on sata"},
		"a read-only unit":         {times(1, on(lun, "scsi", readOnly)), pc, "read_only", "Disk d0 is a lun on scsi"},

		"20 characters":          {times(1, on(disk, "virtio", serial(strings.Repeat("x", 20)))), pc, "", ""},
		"21 characters":          {times(1, on(disk, "virtio", serial(strings.Repeat("x", 21)))), pc, "serial", "21 characters; on virtio its guest would see 20"},
		"21 characters on scsi":  {times(1, on(disk, "scsi", serial(strings.Repeat("x", 21)))), pc, "", ""},
		"21 characters, no bus":  {times(1, on(disk, "", nowhere, serial(strings.Repeat("x", 21)))), pc, "", ""},
		"the serial of a unit":   {times(1, on(lun, "scsi", serial("x"))), pc, "serial", "its guest sees the storage's own"},
		"the serial of a floppy": {times(1, on(floppy, fdc, serial("x"))), pc, "serial", "floppy drives have none"},
		"the policy of a floppy": {
			times(1, on(floppy, fdc, func(d *diskModel) { d.ErrorPolicy = text("stop") })), pc, "error_policy", "always sees the errors",
		},
		"a target":                 {times(1, on(disk, "virtio", target("vdaa"))), pc, "", ""},
		"a target of another bus":  {times(1, on(disk, "virtio", target("sda"))), pc, "target", "begin with vd, and is to be sda"},
		"a target on no bus":       {times(1, on(cdrom, "", nowhere, target("sda"))), pc, "", ""},
		"a fifth target on IDE":    {times(1, on(cdrom, "ide", target("hde"))), pc, "target", "are hda to hdd"},
		"a third floppy's target":  {times(1, on(floppy, fdc, target("fdaa"))), pc, "target", "are fda to fdb"},
		"a target twice":           {times(2, on(disk, "usb", target("sdb"))), pc, "target", "Disks d0 and d1 both have the target sdb"},
		"block sizes":              {times(1, on(disk, "scsi", blocks(size(4096), types.Int64Null()))), pc, "", ""},
		"blocks that aren't known": {times(1, on(disk, "scsi", blocks(size(4096), types.Int64Unknown()))), pc, "", ""},
		"physical blocks on sata":  {times(1, on(disk, "sata", blocks(size(512), size(4096)))), pc, "", ""},
		"logical blocks on sata":   {times(1, on(disk, "sata", blocks(size(4096), size(4096)))), pc, "logical_block_size", "logical blocks have 512 bytes"},
		"physical blocks too small": {
			times(1, on(disk, "virtio", blocks(size(4096), size(512)))), pc, "physical_block_size", "logical blocks of 4096 bytes",
		},
		"the blocks of a unit": {times(1, on(lun, "scsi", blocks(size(512), types.Int64Null()))), pc, "logical_block_size", "can't be chosen"},
		"a thread":             {times(2, on(disk, "virtio", thread)), pc, "", ""},
		"a thread on scsi":     {times(1, on(disk, "scsi", thread)), pc, "iothread", "only a disk on virtio"},
		"a thread, no bus":     {times(1, on(cdrom, "", nowhere, thread)), pc, "", ""},

		"queues":                     {times(1, on(disk, "virtio", queues)), pc, "", ""},
		"queues on scsi":             {times(1, on(disk, "scsi", queues)), pc, "queues", "Disk d0 is a disk on scsi, and queues is for a disk on virtio"},
		"queues, no bus":             {times(1, on(disk, "", nowhere, queues)), pc, "", ""},
		"a name":                     {times(1, on(disk, "scsi", wwn)), pc, "", ""},
		"the name of a drive":        {times(1, on(cdrom, "ide", wwn)), pc, "", ""},
		"a name on sata":             {times(1, on(disk, "sata", wwn)), pc, "wwn", "is for a disk or a cdrom on scsi, ide"},
		"the name of a unit":         {times(1, on(lun, "scsi", wwn)), pc, "wwn", "Disk d0 is a lun on scsi"},
		"the name of a floppy":       {times(1, on(floppy, fdc, wwn)), pc, "wwn", "Disk d0 is a floppy on fdc"},
		"rotation":                   {times(1, on(disk, "sata", rotates)), pc, "", ""},
		"rotation on virtio":         {times(1, on(disk, "virtio", rotates)), pc, "rotation_rate", "a disk on scsi, sata, ide"},
		"the rotation of a drive":    {times(1, on(cdrom, "ide", rotates)), pc, "rotation_rate", "Disk d0 is a cdrom on ide"},
		"zeroes":                     {times(1, on(lun, "scsi", zeroes)), pc, "", ""},
		"the zeroes of a drive":      {times(1, on(cdrom, "sata", zeroes)), pc, "detect_zeroes", "is a cdrom, and detect_zeroes is for a disk or a lun"},
		"limits":                     {times(1, on(lun, "scsi", limited("total_iops_sec", 9, "size_iops_sec", 4096))), pc, "", ""},
		"limits of a drive":          {times(1, on(cdrom, "sata", limited("total_iops_sec", 9))), pc, "iotune", "is a cdrom, and iotune is for"},
		"no limit":                   {times(1, on(disk, "usb", limited())), pc, "iotune", "has an iotune without a limit"},
		"limits that aren't known":   {times(1, on(disk, "usb", func(d *diskModel) { d.IOTune = types.ObjectUnknown(ioTuneTypes) })), pc, "", ""},
		"all and reads":              {times(1, on(disk, "usb", limited("total_iops_sec", 9, "read_iops_sec", 9))), pc, "read_iops_sec", "excludes total_iops_sec"},
		"bytes and requests":         {times(1, on(disk, "usb", limited("total_iops_sec", 9, "read_bytes_sec", 9))), pc, "", ""},
		"only bursts":                {times(1, on(disk, "usb", limited("write_bytes_sec", 9, "read_bytes_sec_max", 9))), pc, "read_bytes_sec_max", "needs read_bytes_sec"},
		"bursts below the average":   {times(1, on(disk, "usb", limited("read_bytes_sec", 9, "read_bytes_sec_max", 8))), pc, "read_bytes_sec_max", "is below"},
		"the length of no bursts":    {times(1, on(disk, "usb", limited("read_bytes_sec", 9, "read_bytes_sec_max_length", 8))), pc, "read_bytes_sec_max_length", "needs read_bytes_sec_max"},
		"the size of no requests":    {times(1, on(disk, "usb", limited("read_bytes_sec", 9, "size_iops_sec", 8))), pc, "size_iops_sec", "needs a limit of requests"},
		"bursts above what is to be": {times(1, on(disk, "usb", limited("read_bytes_sec", -1, "read_bytes_sec_max", 8))), pc, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var diags diag.Diagnostics
			having(t, c.disks...).checkDevices(c.machine, &diags)
			refusal(t, diags, c.refused, c.says)
		})
	}
}

func TestCheckDevices_Volumes(t *testing.T) {
	image := func(kind, protocol, format string, mode volume.AccessMode) volume.Image {
		name := map[string]string{"network": "data", "file": "/data", "block": "/dev/data"}[kind]
		return volume.Image{Type: kind, Protocol: protocol, Format: format, Name: name, AccessMode: mode, Hosts: []string{"node-a"}}
	}
	of := func(images ...volume.Image) func(*diskModel) {
		return func(d *diskModel) { d.Volume = tfvalue.VolumeObject(volume.Volume{Images: images}, tfvalue.Unknowns{}) }
	}
	const alone, all, read = volume.WriteExclusive, volume.WriteShared, volume.ReadShared
	file, device, unit := image("file", "", "raw", alone), image("block", "", "raw", alone), image("network", "iscsi", "raw", alone)
	native := func(cache types.String) func(*diskModel) {
		return func(d *diskModel) { d.IO, d.Cache = types.StringValue("native"), cache }
	}
	zeroes := func(discard types.String) func(*diskModel) {
		return func(d *diskModel) { d.DetectZeroes, d.Discard = types.StringValue("unmap"), discard }
	}
	cache := func(s string) func(*diskModel) { return func(d *diskModel) { d.Cache = types.StringValue(s) } }
	ephemeral := func(d *diskModel) { d.Ephemeral = types.BoolValue(true) }
	readOnly := func(d *diskModel) { d.ReadOnly = types.BoolValue(true) }
	disk, lun, none := domainxml.Fixed, domainxml.LUN, types.StringNull()
	for name, c := range map[string]struct {
		disk          func(*diskModel)
		refused, says string
	}{
		"a unit over iSCSI":       {on(lun, "scsi", of(unit)), "", ""},
		"a unit that is a device": {on(lun, "scsi", of(device)), "", ""},
		"a unit in a file":        {on(lun, "scsi", of(file)), "volume", "has to be a raw block device or raw iSCSI storage"},
		"a unit over NBD":         {on(lun, "scsi", of(image("network", "nbd", "raw", alone))), "volume", "Not a logical unit"},
		"a unit in qcow2":         {on(lun, "scsi", of(image("block", "", "qcow2", alone))), "volume", "Not a logical unit"},
		"a unit over a unit":      {on(lun, "scsi", of(device, image("network", "iscsi", "raw", read))), "volume", "Not a logical unit"},
		"a unit that many read":   {on(lun, "scsi", of(image("network", "iscsi", "raw", read))), "device", "luns on scsi can't be"},
		"a disk that many read":   {on(disk, "sata", of(image("network", "iscsi", "raw", read))), "bus", "disks on sata can't be"},

		"native on a device":      {on(disk, "virtio", of(device), native(none)), "", ""},
		"native on a file":        {on(disk, "virtio", of(file), native(none)), "io", "the host would cache it"},
		"native, directly":        {on(disk, "virtio", of(file), native(types.StringValue("directsync"))), "", ""},
		"native, cached":          {on(disk, "virtio", of(device), native(types.StringValue("writeback"))), "io", "the host would cache it"},
		"native, nobody knows":    {on(disk, "virtio", of(file), native(types.StringUnknown())), "", ""},
		"native on what is to be": {on(disk, "virtio", native(none)), "", ""},
		"native, cached, to be":   {on(disk, "virtio", native(types.StringValue("unsafe"))), "io", "the host would cache it"},
		"native on nothing": {on(domainxml.CDROM, "sata", native(none), func(d *diskModel) {
			d.Volume = types.ObjectNull(tfvalue.VolumeTypes)
		}), "io", "the host would cache it"},

		"others write, no cache": {on(disk, "virtio", of(image("block", "", "raw", all)), cache("none")), "", ""},
		"others write, cached":   {on(disk, "virtio", of(image("block", "", "raw", all)), cache("writethrough")), "cache", "would not see what each other writes"},
		"others read, cached":    {on(disk, "virtio", of(image("block", "", "raw", read)), cache("writeback")), "", ""},

		"zeroes discarded":           {on(disk, "virtio", of(device), zeroes(none)), "", ""},
		"zeroes not discarded":       {on(disk, "virtio", of(file), zeroes(none)), "detect_zeroes", "but not to discard"},
		"zeroes of a file discarded": {on(disk, "virtio", of(file), zeroes(types.StringValue("unmap"))), "", ""},
		"zeroes that stay":           {on(disk, "virtio", of(device), zeroes(types.StringValue("ignore"))), "detect_zeroes", `Add discard = "unmap"`},
		"zeroes that stay, to be":    {on(disk, "virtio", zeroes(types.StringValue("ignore"))), "detect_zeroes", `Add discard = "unmap"`},
		"zeroes of what is to be":    {on(disk, "virtio", zeroes(none)), "", ""},
		"unknown detect_zeroes":      {on(disk, "virtio", of(file), zeroes(types.StringUnknown())), "", ""},

		"an ephemeral file":        {on(disk, "virtio", of(file), ephemeral), "", ""},
		"an ephemeral overlay":     {on(disk, "virtio", of(file, image("network", "iscsi", "raw", read)), ephemeral), "", ""},
		"ephemeral over iSCSI":     {on(disk, "virtio", of(unit), ephemeral), "ephemeral", "libvirt has no ephemeral disk over network storage"},
		"ephemeral on a device":    {on(disk, "virtio", of(image("block", "", "raw", read)), ephemeral), "ephemeral", "over a block device"},
		"ephemeral, and many read": {on(disk, "virtio", of(image("file", "", "raw", read)), ephemeral), "ephemeral", "would open it for writing"},
		"ephemeral and read-only":  {on(disk, "virtio", of(file), ephemeral, readOnly), "ephemeral", "is read_only, so that there is nothing to discard"},
		"an ephemeral medium":      {on(domainxml.CDROM, "sata", of(image("network", "iscsi", "raw", read)), ephemeral), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var diags diag.Diagnostics
			checkDisks(t.Context(), having(t, c.disk), &diags)
			refusal(t, diags, c.refused, c.says)
		})
	}
	var diags diag.Diagnostics
	copying := volume.Volume{CopyOnRead: true, Images: []volume.Image{image("file", "", "qcow2", alone), image("network", "iscsi", "raw", read)}}
	checkDisks(t.Context(), having(t, on(disk, "virtio", func(d *diskModel) {
		d.Volume, d.ReadOnly = tfvalue.VolumeObject(copying, tfvalue.Unknowns{}), types.BoolValue(true)
	})), &diags)
	refusal(t, diags, "read_only", "keeps what is read of its master")
}

func TestCheckDevices_UnsupportedByHost(t *testing.T) {
	want := domainxml.Machine{Disks: map[string]domainxml.Disk{
		"a": {Device: domainxml.Floppy, Bus: fdc}, "b": {Device: domainxml.Fixed, Bus: "sata"}, "c": {Device: domainxml.Fixed},
	}}
	for _, c := range []struct {
		caps          host.DomainCapabilities
		refused, says string
	}{
		{host.DomainCapabilities{}, "", ""},
		{host.DomainCapabilities{DiskDevices: []string{"disk", "floppy"}, DiskBuses: []string{"fdc", "sata"}}, "", ""},
		{host.DomainCapabilities{DiskDevices: []string{"disk"}}, "device", `no device "floppy" on this host for such a machine. There is: disk`},
		{host.DomainCapabilities{DiskBuses: []string{"fdc", "usb"}}, "bus", `no bus "sata"`},
	} {
		var diags diag.Diagnostics
		hasBuses(c.caps, want, &diags)
		refusal(t, diags, c.refused, c.says)
	}
}

func TestCheckDevices_WriteSharedMedium(t *testing.T) {
	for device, refused := range map[string]bool{domainxml.Fixed: false, domainxml.CDROM: true} {
		for _, mode := range []volume.AccessMode{volume.ReadShared, volume.WriteExclusive, volume.WriteShared} {
			var diags diag.Diagnostics
			v := volume.Volume{Images: []volume.Image{{Name: "data", AccessMode: mode}}}
			checkMedium("seed", diskModel{Device: types.StringValue(device)}, v, &diags)
			if diags.HasError() != (refused && mode == volume.WriteShared) {
				t.Errorf("%s, %s: %v", device, mode, diags)
			}
		}
	}
}

// A volume without images can't be configured, so that the plan always has a change.
func TestCheckDevices_UnknownDrive(t *testing.T) {
	volumeOf := func(d domainxml.Disk) attr.Value { return diskObject(d).(types.Object).Attributes()["volume"] }
	if v := volumeOf(domainxml.Disk{Device: domainxml.CDROM}); !v.IsNull() {
		t.Errorf("an empty drive has %s", v)
	}
	v := volumeOf(domainxml.Disk{Device: domainxml.CDROM, Conflicting: true})
	if o, ok := v.(types.Object); !ok || v.IsNull() || len(o.Attributes()["images"].(types.List).Elements()) != 0 {
		t.Errorf("a conflicting one has %s", v)
	}
}

// The meaning of a machine type is not guessed: hosts choose pc, q35 or the default of their architecture.
func TestCheckDevices_SecureBoot(t *testing.T) {
	m := model{Firmware: types.ObjectValueMust(firmwareTypes, map[string]attr.Value{
		"type": types.StringValue(domainxml.UEFI), "secure_boot": types.BoolValue(true),
	})}
	for machineType, refused := range map[string]bool{"": false, "pc-q35-7.2": false, "virt-7.2": false, "pc-i440fx-7.2": true} {
		var diags diag.Diagnostics
		asked := machineModel{Type: tfvalue.OrNull(machineType)}
		if m.checkFirmware((&virtualMachine{}).resolved(t.Context(), m.Host, asked), &diags); diags.HasError() != refused {
			t.Errorf("%q: %v", machineType, diags)
		}
	}
}
