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
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

var filesystemsGroup = attributeGroup{
	attributes: filesystemsAttributes, intent: filesystemsIntent, read: readFilesystems, check: checkFilesystems,
}

type filesystemModel struct {
	Source   types.String `tfsdk:"source"`
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
			"source": pathAttribute("Folder on the host. It must exist when the machine starts.", true),
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
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Share the folder read-only. Requires libvirt 11.0 with `virtiofs`.",
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

func filesystemsIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	for key, f := range m.filesystems() {
		if want.Filesystems == nil {
			want.Filesystems = map[string]domainxml.Filesystem{}
		}
		want.Filesystems[key] = domainxml.Filesystem{
			Source: f.Source.ValueString(), Target: f.tag(key), Driver: f.Driver.ValueString(), ReadOnly: f.ReadOnly.ValueBool(),
		}
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
		all[key] = types.ObjectValueMust(filesystemTypes, map[string]attr.Value{
			"source": types.StringValue(f.Source), "target": target, "driver": types.StringValue(f.Driver),
			"read_only": types.BoolValue(f.ReadOnly),
		})
	}
	m.Filesystems = types.MapValueMust(types.ObjectType{AttrTypes: filesystemTypes}, all)
}

// checkFilesystems refuses duplicate tags.
func checkFilesystems(_ context.Context, m model, diags *diag.Diagnostics) {
	all, first := m.filesystems(), map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if all[key].Target.IsUnknown() {
			continue
		}
		tag := all[key].tag(key)
		if other, taken := first[tag]; taken {
			diags.AddAttributeError(path.Root("filesystems").AtMapKey(key).AtName("target"), "Two filesystems of one tag",
				fmt.Sprintf("Filesystems %s and %s both have the tag %s. Give each its own target.", other, key, tag))
		}
		first[tag] = key
	}
}
