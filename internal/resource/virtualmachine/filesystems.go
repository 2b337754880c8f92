package virtualmachine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var filesystemsGroup = attributeGroup{
	attributes: filesystemsAttributes, intent: filesystemsIntent, read: readFilesystems, check: checkFilesystems,
}

type filesystemModel struct {
	Source   types.String `tfsdk:"source"`
	Volume   types.Object `tfsdk:"volume"`
	Target   types.String `tfsdk:"target"`
	Driver   types.String `tfsdk:"driver"`
	ReadOnly types.Bool   `tfsdk:"read_only"`
}

var filesystemTypes = attributesOf(filesystemsAttributes()["filesystems"].GetType())

func filesystemsAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"filesystems": schema.MapNestedAttribute{
		Optional: true,
		MarkdownDescription: "Folders of the host that the guest can mount, keyed by a name of your choice. A folder that several " +
			"machines or hosts use needs a filesystem, and applications, made for that. Changes take effect at the next start.",
		Validators: []validator.Map{
			mapvalidator.KeysAre(stringvalidator.RegexMatches(deviceKey, "must consist of letters, digits, _ and -")),
		},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"source": pathAttribute("Folder on the host, instead of a `volume`. It must exist when the machine starts.", false,
				stringvalidator.ExactlyOneOf(path.MatchRelative().AtParent().AtName("volume"))),
			"volume": schema.ObjectAttribute{
				Optional: true, AttributeTypes: tfvalue.VolumeTypes,
				MarkdownDescription: "Volume of a `virtclaim_volume_binding` with `shared_folder = true`, whose folder the guest gets " +
					"under the binding's access mode: while one machine has it `write-exclusive`, no other machine starts with it.",
			},
			"target": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Tag by which the guest mounts it (`mount -t virtiofs <tag> /mnt`). Defaults to " +
					"the key.",
				Validators: []validator.String{stringvalidator.LengthBetween(1, 31)},
			},
			"driver": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(domainxml.VirtioFS),
				MarkdownDescription: "`virtiofs` (default), for which the guest's memory is shared with a `virtiofsd` on the host, or " +
					"`9p`.",
				Validators: []validator.String{stringvalidator.OneOf(domainxml.VirtioFS, domainxml.NineP)},
			},
			"read_only": schema.BoolAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Share the folder read-only; `true` if absent for a volume that is `read-shared`, which has to be, " +
					"otherwise `false`. Requires libvirt 11.0 with `virtiofs`.",
			},
		}},
	}}
}

// filesystems are the filesystems by key; none while the map is unknown.
func (m model) filesystems() map[string]filesystemModel {
	return objects[filesystemModel](m.Filesystems)
}

// tag is the name that the guest mounts.
func (f filesystemModel) tag(key string) string {
	if f.Target.IsNull() {
		return key
	}
	return f.Target.ValueString()
}

// filesystemPath is the path of a filesystem in the configuration.
func filesystemPath(key string) path.Path { return path.Root("filesystems").AtMapKey(key) }

// folder is the volume of the filesystem; without an image if it has none, or one that is not known.
func (f filesystemModel) folder(diags *diag.Diagnostics) volume.Volume {
	v, _, found := tfvalue.VolumeFrom(f.Volume)
	diags.Append(found...)
	return v
}

// settleFilesystems sets read_only of filesystems that do not configure it. It is unknown while the volume is.
func (m *model) settleFilesystems(given model) {
	chosen, all := given.filesystems(), maps.Clone(m.Filesystems.Elements())
	for key, f := range m.filesystems() {
		if c, is := chosen[key]; is && !c.ReadOnly.IsNull() {
			continue
		}
		v, known, _ := tfvalue.VolumeFrom(f.Volume)
		reads := types.BoolValue(known && len(v.Images) > 0 && v.Images[0].AccessMode == volume.ReadShared)
		if !known && !f.Volume.IsNull() {
			reads = types.BoolUnknown()
		}
		values := maps.Clone(all[key].(types.Object).Attributes())
		values["read_only"] = reads
		all[key] = types.ObjectValueMust(filesystemTypes, values)
	}
	if isSet(m.Filesystems) {
		m.Filesystems = types.MapValueMust(types.ObjectType{AttrTypes: filesystemTypes}, all)
	}
}

func filesystemsIntent(_ context.Context, m model, want *domainxml.Machine, diags *diag.Diagnostics) {
	for key, f := range m.filesystems() {
		if want.Filesystems == nil {
			want.Filesystems = map[string]domainxml.Filesystem{}
		}
		is := domainxml.Filesystem{
			Source: f.Source.ValueString(), Target: f.tag(key), Driver: f.Driver.ValueString(), ReadOnly: f.ReadOnly.ValueBool(),
			Volume: f.folder(diags),
		}
		if len(is.Volume.Images) > 0 {
			is.Source = is.Volume.Images[0].Name
		}
		want.Filesystems[key] = is
	}
}

// readFilesystems keeps null or an empty map, and a tag that is configured although it equals the key.
func readFilesystems(m *model, is domainxml.Machine) {
	if len(is.Filesystems) == 0 && len(m.Filesystems.Elements()) == 0 {
		return
	}
	before := m.Filesystems.Elements()
	all := map[string]attr.Value{}
	for key, f := range is.Filesystems {
		target := types.StringValue(f.Target)
		if given, ok := before[key].(types.Object); f.Target == key && (!ok || given.Attributes()["target"].IsNull()) {
			target = types.StringNull()
		}
		source, bound := types.StringValue(f.Source), types.ObjectNull(tfvalue.VolumeTypes)
		if len(f.Volume.Images) > 0 {
			source, bound = types.StringNull(), tfvalue.VolumeObject(f.Volume, tfvalue.Unknowns{})
		}
		all[key] = types.ObjectValueMust(filesystemTypes, map[string]attr.Value{
			"source": source, "volume": bound, "target": target, "driver": types.StringValue(f.Driver),
			"read_only": types.BoolValue(f.ReadOnly),
		})
	}
	m.Filesystems = types.MapValueMust(types.ObjectType{AttrTypes: filesystemTypes}, all)
}

// checkFilesystems refuses duplicate tags, and volumes that can't be shared as configured.
func checkFilesystems(_ context.Context, m model, diags *diag.Diagnostics) {
	m.checkFolders(diags)
	all, first := m.filesystems(), map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if all[key].Target.IsUnknown() {
			continue
		}
		tag := all[key].tag(key)
		if other, taken := first[tag]; taken {
			diags.AddAttributeError(filesystemPath(key).AtName("target"), "Two filesystems of one tag",
				fmt.Sprintf("Filesystems %s and %s both have the tag %s. Give each its own target.", other, key, tag))
		}
		first[tag] = key
	}
}

// checkFolders refuses volumes that are no folders or can't be shared as configured, and a folder that the machine would write to through
// one device and have through another.
func (m model) checkFolders(diags *diag.Diagnostics) {
	others, bound := map[string]volume.Volume{}, map[string]bool{}
	for key, d := range m.disks() {
		others["disk "+key], _, _ = tfvalue.VolumeFrom(d.Volume) // checkDisks reports its errors
	}
	all := m.filesystems()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		f, at, host := all[key], filesystemPath(key), m.Host.ValueString()
		v, known, found := tfvalue.VolumeFrom(f.Volume)
		diags.Append(found...)
		if known && (len(v.Images) != 1 || !v.Images[0].IsFolder()) {
			diags.AddAttributeError(at.AtName("volume"), "No folder", fmt.Sprintf("The volume of filesystem %s is no folder that a guest "+
				"could share. Take it from a virtclaim_volume_binding with shared_folder = true.", key))
			continue
		}
		checkHost(at, "Filesystem "+key, host, v, diags)
		checkMode(at, "Filesystem "+key, v, diags)
		is := f.shared(host, v)
		if known && v.Images[0].AccessMode == volume.ReadShared && f.ReadOnly.Equal(types.BoolValue(false)) {
			diags.AddAttributeError(at.AtName("read_only"), "A folder that can only be read", fmt.Sprintf("Filesystem %s is %s, which is "+
				"bound read-shared. Leave read_only out, or bind it write-shared.", key, v.Images[0].Name))
		}
		for _, other := range slices.Sorted(maps.Keys(others)) {
			if i := writtenElsewhere(is, others[other]); i != nil && (known || bound[other]) {
				diags.AddAttributeError(at, "The same storage twice", fmt.Sprintf("Filesystem %s shares %s, and %s has the same storage, "+
					"or some of it. One of them writes to it.", key, i.Name, other))
			}
		}
		others["filesystem "+key], bound["filesystem "+key] = is, known
	}
}

// shared is the folder as the guest has it: what is only read is not written to.
func (f filesystemModel) shared(host string, bound volume.Volume) volume.Volume {
	i := volume.Image{Type: "dir", Name: f.Source.ValueString(), AccessMode: volume.WriteShared, Hosts: []string{host}}
	if len(bound.Images) > 0 {
		i = bound.Images[0]
	}
	if f.ReadOnly.ValueBool() {
		i.AccessMode = volume.ReadShared
	}
	return volume.Volume{Images: []volume.Image{i}}
}
