package virtualmachine

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func folderOf(name string, mode volume.AccessMode) types.Object {
	return tfvalue.VolumeObject(volume.Volume{Images: []volume.Image{{
		Type: "dir", Format: "dir", Name: name, AccessMode: mode, Hosts: []string{"a"}, Binding: "id/i/vms/data",
	}}}, tfvalue.Unknowns{})
}

// share is a filesystem: of a volume, or of a source if that is null.
func share(source string, v types.Object, readOnly types.Bool) attr.Value {
	return types.ObjectValueMust(filesystemTypes, map[string]attr.Value{
		"source": tfvalue.OrNull(source), "volume": v, "target": types.StringNull(), "driver": types.StringValue("9p"), "read_only": readOnly,
	})
}

func sharing(all map[string]attr.Value) model {
	return model{Host: types.StringValue("a"), Filesystems: types.MapValueMust(types.ObjectType{AttrTypes: filesystemTypes}, all)}
}

func TestFilesystems_VolumeChecks(t *testing.T) {
	no, yes, none := types.BoolValue(false), types.BoolValue(true), types.ObjectNull(tfvalue.VolumeTypes)
	exclusive, read := folderOf("/mnt/claim", volume.WriteExclusive), folderOf("/mnt/claim", volume.ReadShared)
	file := volume.Image{Type: "file", Format: "raw", Name: "/mnt/claim/disk.img", AccessMode: volume.WriteExclusive, Hosts: []string{"a"}, Binding: "x/i"}
	elsewhere := volume.Image{Type: "dir", Name: "/mnt/claim", AccessMode: volume.WriteShared, Hosts: []string{"b"}}
	of := func(i ...volume.Image) types.Object {
		return tfvalue.VolumeObject(volume.Volume{Images: i}, tfvalue.Unknowns{})
	}
	for name, c := range map[string]struct {
		all     map[string]attr.Value
		disk    types.Object
		refused string
	}{
		"a folder":                          {map[string]attr.Value{"a": share("", exclusive, no)}, none, ""},
		"one to read":                       {map[string]attr.Value{"a": share("", read, yes)}, none, ""},
		"what is not known":                 {map[string]attr.Value{"a": share("", tfvalue.UnknownVolume(), types.BoolUnknown())}, none, ""},
		"a disk":                            {map[string]attr.Value{"a": share("", of(file), no)}, none, "with shared_folder = true"},
		"no image":                          {map[string]attr.Value{"a": share("", of(), no)}, none, "with shared_folder = true"},
		"another host":                      {map[string]attr.Value{"a": share("", of(elsewhere), no)}, none, "Filesystem a uses /mnt/claim, which is bound for the hosts b, not for a"},
		"no access mode":                    {map[string]attr.Value{"a": share("", folderOf("/mnt/claim", ""), no)}, none, "whose access_mode is"},
		"one to read that is to be written": {map[string]attr.Value{"a": share("", read, no)}, none, "which is bound read-shared. Leave read_only out"},
		"twice":                             {map[string]attr.Value{"a": share("", exclusive, no), "b": share("", exclusive, yes)}, none, "Filesystem b shares /mnt/claim, and filesystem a has"},
		"twice, only to read":               {map[string]attr.Value{"a": share("", read, yes), "b": share("", read, yes)}, none, ""},
		"below a plain one":                 {map[string]attr.Value{"a": share("", exclusive, no), "b": share("/mnt", none, no)}, none, "Filesystem b shares /mnt, and filesystem a has"},
		"two plain ones":                    {map[string]attr.Value{"a": share("/srv", none, no), "b": share("/srv", none, no)}, none, ""},
		"a disk in the folder":              {map[string]attr.Value{"a": share("", exclusive, no)}, of(file), "Filesystem a shares /mnt/claim, and disk data has"},
		"a disk in a plain folder":          {map[string]attr.Value{"a": share("/mnt", none, no)}, of(file), ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := sharing(c.all)
			disk := map[string]attr.Value{}
			for key, of := range diskTypes {
				null, err := of.ValueFromTerraform(t.Context(), nullOf(t, of))
				if err != nil {
					t.Fatal(err)
				}
				disk[key] = null
			}
			disk["volume"] = c.disk
			m.Disks = types.MapValueMust(types.ObjectType{AttrTypes: diskTypes}, map[string]attr.Value{"data": types.ObjectValueMust(diskTypes, disk)})
			var diags diag.Diagnostics
			checkFilesystems(t.Context(), m, &diags)
			if diags.HasError() != (c.refused != "") || diags.HasError() && !strings.Contains(diags[0].Detail(), c.refused) {
				t.Errorf("got %v, want %q", diags, c.refused)
			}
		})
	}
}

// A folder that can only be read is read-only unless that is configured, which then is refused.
func TestFilesystems_ReadOnlyByVolume(t *testing.T) {
	unknown, none := types.BoolUnknown(), types.ObjectNull(tfvalue.VolumeTypes)
	read := folderOf("/mnt/claim", volume.ReadShared)
	for name, c := range map[string]struct {
		volume      types.Object
		given, want types.Bool
	}{
		"read-shared":       {read, types.BoolNull(), types.BoolValue(true)},
		"write-shared":      {folderOf("/a", volume.WriteShared), types.BoolNull(), types.BoolValue(false)},
		"what is not known": {tfvalue.UnknownVolume(), types.BoolNull(), unknown},
		"no volume":         {none, types.BoolNull(), types.BoolValue(false)},
		"configured":        {folderOf("/a", volume.WriteShared), types.BoolValue(true), types.BoolValue(true)},
		"configured not to": {read, types.BoolValue(false), types.BoolValue(false)},
	} {
		planned := c.given
		if planned.IsNull() {
			planned = unknown
		}
		m := sharing(map[string]attr.Value{"a": share("", c.volume, planned)})
		m.settleFilesystems(sharing(map[string]attr.Value{"a": share("", c.volume, c.given)}))
		if got := m.filesystems()["a"].ReadOnly; !got.Equal(c.want) {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// What is defined is read back as configured: with the volume, and then without a source.
func TestFilesystems_VolumeRoundTrip(t *testing.T) {
	m := sharing(map[string]attr.Value{
		"data":  share("", folderOf("/mnt/claim", volume.WriteExclusive), types.BoolValue(false)),
		"plain": share("/srv", types.ObjectNull(tfvalue.VolumeTypes), types.BoolValue(true)),
	})
	var want domainxml.Machine
	var diags diag.Diagnostics
	filesystemsIntent(t.Context(), m, &want, &diags)
	if want.Filesystems["data"].Source != "/mnt/claim" || diags.HasError() {
		t.Fatalf("got %+v, %v", want.Filesystems, diags)
	}
	want.Name, want.VCPUs, want.Memory, want.DomainType = "web", 1, 65536, "qemu"
	text, err := domainxml.Build(want)
	if err != nil {
		t.Fatal(err)
	}
	is, err := domainxml.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	now := model{Filesystems: m.Filesystems}
	if readFilesystems(&now, is); !now.Filesystems.Equal(m.Filesystems) {
		t.Errorf("got %s, want %s", now.Filesystems, m.Filesystems)
	}
}
