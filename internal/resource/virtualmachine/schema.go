package virtualmachine

import (
	"context"
	"maps"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var (
	// domainName leaves out what libvirt refuses in names (a slash) and what an import id could not carry.
	domainName = regexp.MustCompile(`^[^/\s]+$`)
	notEmpty   = []validator.String{stringvalidator.LengthAtLeast(1)}
)

func (r *machine) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A virtual machine: a libvirt domain on one host. Its disks take the `volume` of a binding or of a disk.\n\n" +
			"All but `host`, `name` and `machine` changes in place. Disks on the buses virtio, scsi and usb are plugged " +
			"into and unplugged from a running machine, unless it boots from them, and its CD-ROM drives are given other media; it is " +
			"given memory and processors within their maximum. What a running guest can't be given is written to the stored definition, " +
			"and a warning says that it takes effect at the machine's next start; or `allow_restart` restarts it. Another `host`, `name` " +
			"or `machine` (but its `hotplug_ports`) is another machine.\n\n" +
			"A guest is asked to give a medium up before another one is inserted, or the medium's `virtclaim_disk` is removed. One with " +
			"systemd does so even while the medium is mounted. Another one may refuse while it uses the medium: then the apply fails " +
			"and says so, and the next one goes on. The first read after a change may fail, as it does on real drives. The medium that a " +
			"running machine boots from (a `cdrom` with a `boot_order`) is never taken out: it is changed at the machine's next start.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed: true, MarkdownDescription: "`<host>/<name>`, which is also the import id.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"uuid": schema.StringAttribute{
				Computed: true, MarkdownDescription: "UUID of the libvirt domain.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"host": schema.StringAttribute{
				Required: true, MarkdownDescription: "Key of the provider's `hosts` on which the machine runs.",
				PlanModifiers: []planmodifier.String{replacesWhenKnown()},
			},
			"name": schema.StringAttribute{
				Required: true, MarkdownDescription: "Name of the libvirt domain, unique on its host. Names that begin with `virtclaim-` are reserved.",
				PlanModifiers: []planmodifier.String{replacesWhenKnown()},
				Validators: []validator.String{
					stringvalidator.RegexMatches(domainName, "must not be empty and hold neither slashes nor white space"),
					stringvalidator.NoneOf(".", ".."),
				},
			},
			"running": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(true),
				MarkdownDescription: "Whether the machine runs. It is shut down gracefully, within the update timeout.",
			},
			"force_stop": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Turn the power off when the guest has not shut down within a minute, or half of the timeout if " +
					"that is less; at once when it is paused. Without it, a guest that does not shut down is an error, because what it has not " +
					"written yet would be lost. An update uses what its own configuration says. A destroy has no configuration and uses what was " +
					"applied: to destroy a machine whose guest ignores its power button, apply `force_stop = true` first. An apply keeps it, and " +
					"`timeouts`, also when it fails.",
			},
			"timeouts": timeouts.Attributes(ctx, timeouts.Opts{Create: true, Read: true, Update: true, Delete: true}),
		},
	}
	for _, g := range groups {
		maps.Copy(resp.Schema.Attributes, g.attributes())
	}
}

func pathAttribute(description string, required bool, more ...validator.String) schema.Attribute {
	return schema.StringAttribute{
		Required: required, Optional: !required, MarkdownDescription: description,
		Validators: append([]validator.String{tfvalue.AbsolutePath()}, more...),
	}
}
