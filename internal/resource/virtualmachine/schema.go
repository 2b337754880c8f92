package virtualmachine

import (
	"context"
	"maps"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var (
	// domainName excludes what libvirt refuses in names (a slash) and what an import id can't contain.
	domainName = regexp.MustCompile(`^[^/\s]+$`)
	validName  = stringvalidator.RegexMatches(domainName, "must not be empty and hold neither slashes nor white space")
	notEmpty   = []validator.String{stringvalidator.LengthAtLeast(1)}
)

func (r *virtualMachine) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Version: providerdata.WithURIs,
		MarkdownDescription: "A virtual machine: a libvirt domain on one host. Its disks take the `volume` of a binding or of a disk.\n\n" +
			"All attributes except `name`, `name_prefix` and `machine` (other than its `hotplug_ports`) are changed in place; changing " +
			"those forces a new resource. In a running machine, disks on the buses `virtio`, `scsi` and `usb` are plugged and unplugged, " +
			"unless it boots from them; media of CD-ROM drives are changed; memory and processors are changed up to their maximum. Other " +
			"changes are written to the stored definition: a warning says that they take effect at the next start, or, with " +
			"`allow_restart`, the machine is restarted.\n\nThe guest is asked to release a medium before another one is inserted, or the " +
			"medium's `virtclaim_disk` is destroyed. Guests with systemd do so even while the medium is mounted. Other guests may refuse " +
			"while they use it: then the apply fails, and the next one continues. The first read after a change may fail, as with real " +
			"drives. The medium from which a running machine boots (a `cdrom` with a `boot_order`) is not ejected: it is changed at the " +
			"next start.",
		Attributes: map[string]schema.Attribute{
			"id":   tfvalue.Constant("`<host>/<name>`, which is also the import id."),
			"uuid": tfvalue.Constant("UUID of the libvirt domain."),
			"host": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "Key of the host in the provider's `hosts` on which the machine runs. Another one moves the " +
					"machine, if its storage can be opened there: see `migration`.",
			},
			"name": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "Name of the libvirt domain, unique on its host. Either this or `name_prefix`. Names that begin " +
					"with `virtclaim-` are reserved. Another one renames a machine that is off, unless its firmware is UEFI: that one, " +
					"and a running one, is replaced.",
				Validators: []validator.String{
					validName, stringvalidator.NoneOf(".", ".."),
					stringvalidator.ExactlyOneOf(path.MatchRoot("name"), path.MatchRoot("name_prefix")),
				},
			},
			"name_prefix": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Prefix of a generated name. For machines that are replaced with `create_before_destroy`: the new " +
					"one runs before the old one goes. A machine whose name begins with it keeps its name.",
				Validators: []validator.String{validName, stringvalidator.LengthAtMost(longestPrefix)},
			},
			"running": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(true),
				MarkdownDescription: "Whether the machine runs. It is shut down gracefully, within the update timeout, unless " +
					"`force_stop` is set.",
			},
			"force_stop": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Force the machine off if the guest has not shut down within a minute, or half of the timeout " +
					"if that is less; at once if it is paused. Otherwise a guest that does not shut down is an error, because " +
					"unwritten data would be lost. An update uses the value of its configuration. A destroy has no configuration and " +
					"uses the value applied last: to destroy a machine whose guest ignores ACPI shutdown requests, apply `force_stop " +
					"= true` first. A failed apply stores it, too, and `shutdown_mode` and `timeouts`.",
			},
			"timeouts": tfvalue.Timeouts(ctx, createTimeout, readTimeout, updateTimeout, deleteTimeout),
		},
	}
	for _, g := range groups {
		maps.Copy(resp.Schema.Attributes, g.attributes())
	}
}

// attributesOf are the types of the attributes of an object, or of the objects that a map has.
func attributesOf(t attr.Type) map[string]attr.Type {
	if m, ok := t.(attr.TypeWithElementType); ok {
		t = m.ElementType()
	}
	return t.(attr.TypeWithAttributeTypes).AttributeTypes()
}

func pathAttribute(description string, required bool, more ...validator.String) schema.Attribute {
	return schema.StringAttribute{
		Required: required, Optional: !required, MarkdownDescription: description,
		Validators: append([]validator.String{tfvalue.AbsolutePath()}, more...),
	}
}
