package virtualmachine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func TestDefaultBus(t *testing.T) {
	none, unknown, of := types.StringNull(), types.StringUnknown(), types.StringValue
	for name, c := range map[string]struct{ device, machineType, arch, want types.String }{
		"disk on pc":                          {of("disk"), of("pc"), none, of("virtio")},
		"disk on q35":                         {of("disk"), of("q35"), none, of("virtio")},
		"disk on what is not known":           {of("disk"), unknown, unknown, of("virtio")},
		"cdrom on pc":                         {of("cdrom"), of("pc"), none, of("ide")},
		"cdrom on pc by its full name":        {of("cdrom"), of("pc-i440fx-7.2"), of("x86_64"), of("ide")},
		"cdrom on libvirt's choice":           {of("cdrom"), none, none, of("ide")},
		"cdrom on libvirt's choice on x86":    {of("cdrom"), none, of("i686"), of("ide")},
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

// withDisks is a model with that many disks, d0 and so on, that are alike.
func withDisks(n int, device, bus string) model {
	disks := map[string]attr.Value{}
	for i := range n {
		disks[fmt.Sprintf("d%d", i)] = types.ObjectValueMust(diskTypes, map[string]attr.Value{
			"volume": types.ObjectNull(tfvalue.VolumeTypes), "device": types.StringValue(device), "bus": types.StringValue(bus),
			"boot_order": types.Int64Null(), "ephemeral": types.BoolValue(false),
		})
	}
	return model{Disks: types.MapValueMust(types.ObjectType{AttrTypes: diskTypes}, disks)}
}

func TestCheckDevices(t *testing.T) {
	pc := machineModel{Type: types.StringValue("pc")}
	virt := machineModel{Type: types.StringValue("virt"), Arch: types.StringValue("aarch64")}
	for name, c := range map[string]struct {
		disks   model
		machine machineModel
		refuse  string
	}{
		"four on IDE":             {withDisks(4, domainxml.CDROM, "ide"), pc, ""},
		"five on IDE":             {withDisks(5, domainxml.CDROM, "ide"), pc, "Disk d4 is on the bus ide, where a machine has 4 devices at most"},
		"five on sata":            {withDisks(5, domainxml.CDROM, "sata"), pc, ""},
		"IDE on q35":              {withDisks(1, domainxml.Fixed, "ide"), machineModel{Type: types.StringValue("q35")}, "this machine (q35) has none"},
		"IDE on virt":             {withDisks(1, domainxml.Fixed, "ide"), virt, "this machine (aarch64 virt) has none"},
		"IDE on what isn't known": {withDisks(1, domainxml.Fixed, "ide"), machineModel{Type: types.StringUnknown()}, ""},
		"a drive on virtio":       {withDisks(1, domainxml.CDROM, "virtio"), pc, "no such drives on virtio"},
	} {
		var diags diag.Diagnostics
		c.disks.checkDevices(t.Context(), c.machine, &diags)
		switch {
		case c.refuse == "" && diags.ErrorsCount() > 0, c.refuse != "" && diags.ErrorsCount() != 1:
			t.Errorf("%s: %v", name, diags)
		case c.refuse != "" && !strings.Contains(diags.Errors()[0].Detail(), c.refuse):
			t.Errorf("%s: %v, want %s", name, diags, c.refuse)
		}
	}
}

func TestNoMediumThatOthersWriteTo(t *testing.T) {
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
