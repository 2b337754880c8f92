package virtualmachine

import (
	"context"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var (
	// domainName leaves out what libvirt refuses in names (a slash) and what an import id could not carry.
	domainName = regexp.MustCompile(`^[^/\s]+$`)
	// diskKey is what libvirt keeps of a user alias; other characters it drops without a word.
	diskKey      = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	absolutePath = regexp.MustCompile(`^/`)
)

func (r *machine) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A virtual machine: a libvirt domain on one host. Its disks take the `volume` of a binding or of a disk.\n\n" +
			"`cpu`, `memory`, `boot`, `disks`, `serial` and `running` change in place. Disks on the buses virtio and scsi are plugged " +
			"into and unplugged from a running machine, unless it boots from them, and its CD-ROM drives are given other media. The rest " +
			"is written to the stored definition; where the machine runs, a warning says that it takes effect at its next start. " +
			"Another `host`, `name` or `machine` is another machine.\n\n" +
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
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"name": schema.StringAttribute{
				Required: true, MarkdownDescription: "Name of the libvirt domain, unique on its host.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				Validators: []validator.String{
					stringvalidator.RegexMatches(domainName, "must not be empty and hold neither slashes nor white space"),
				},
			},
			"cpu": schema.SingleNestedAttribute{
				Optional: true, Computed: true, MarkdownDescription: "Processors. One by default.",
				Default: objectdefault.StaticValue(types.ObjectValueMust(cpuTypes, map[string]attr.Value{"vcpus": types.Int64Value(1)})),
				Attributes: map[string]schema.Attribute{
					"vcpus": schema.Int64Attribute{
						Required: true, MarkdownDescription: "Number of virtual processors.",
						Validators: []validator.Int64{int64validator.Between(1, 4096)},
					},
				},
			},
			"memory": schema.StringAttribute{
				Required: true, CustomType: tfvalue.QuantityType{},
				MarkdownDescription: "Memory as a Kubernetes quantity, such as `512Mi` or `2Gi`. Rounded up to whole KiB.",
			},
			"machine": machineAttribute(),
			"boot": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "A kernel to boot directly instead of from a disk. Paths are on the host.",
				Attributes: map[string]schema.Attribute{
					"kernel":  pathAttribute("Path of the kernel.", true),
					"initrd":  pathAttribute("Path of the initial RAM disk.", false),
					"cmdline": schema.StringAttribute{Optional: true, MarkdownDescription: "The kernel's command line."},
				},
			},
			"disks": disksAttribute(),
			"serial": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "A serial port, reached with `virsh console`.",
				Attributes: map[string]schema.Attribute{
					"log_file": pathAttribute("File on the host that keeps all that the guest writes to the port.", false),
				},
			},
			"running": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(true),
				MarkdownDescription: "Whether the machine runs. It is shut down gracefully, within the update timeout.",
			},
			"force_stop": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Turn the power off when the guest has not shut down within a minute, or half of the timeout if " +
					"that is less. Without it, a guest that does not shut down is an error, because what it has not written yet would be lost.",
			},
			"timeouts": timeouts.Attributes(ctx, timeouts.Opts{Create: true, Read: true, Update: true, Delete: true}),
		},
	}
}

func machineAttribute() schema.Attribute {
	kept := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	return schema.SingleNestedAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "What is emulated. Another one is another machine.",
		PlanModifiers:       []planmodifier.Object{objectplanmodifier.UseStateForUnknown()},
		Attributes: map[string]schema.Attribute{
			"type": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: kept,
				MarkdownDescription: "Machine type, such as `pc`, `q35` or a full name. libvirt's default if absent.",
			},
			"arch": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: kept,
				MarkdownDescription: "Architecture, such as `x86_64`. The host's own if absent.",
			},
			"domain_type": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: kept,
				MarkdownDescription: "`kvm` (default), or `qemu` for emulation where the host has no KVM.",
				Validators:          []validator.String{stringvalidator.OneOf("kvm", "qemu")},
			},
		},
	}
}

func disksAttribute() schema.Attribute {
	return schema.MapNestedAttribute{
		Optional: true,
		MarkdownDescription: "Disks, keyed by a name of your choice. The key is the disk's identity: adding one leaves the others " +
			"where they are.",
		Validators: []validator.Map{
			mapvalidator.KeysAre(stringvalidator.RegexMatches(diskKey, "must consist of letters, digits, _ and -")),
		},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"volume": schema.ObjectAttribute{
				Required: true, AttributeTypes: tfvalue.VolumeTypes,
				MarkdownDescription: "The volume, from a `virtclaim_volume_binding` or a `virtclaim_disk`. A changed volume never replaces the machine.",
			},
			"device": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(domainxml.Fixed),
				MarkdownDescription: "How the guest sees the volume: `disk` (default), or `cdrom`, which it can only read from, also where the " +
					"volume's access mode lets it write. Another volume of a `cdrom` is another medium in its drive, also while the machine runs. " +
					"A new drive is there at the next start.",
				Validators: []validator.String{stringvalidator.OneOf(domainxml.Fixed, domainxml.CDROM)},
			},
			"bus": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "`virtio` (default of a `disk`), `scsi` (on a virtio-scsi controller), `sata` (default of a `cdrom` on a " +
					"machine of type `q35`) or `ide` (default of a `cdrom` on a `pc`, which is x86's own type; up to four devices, and none on " +
					"other types). On all others a `cdrom` is on `scsi` by default. A `cdrom` can't be on `virtio`.",
				Validators: []validator.String{stringvalidator.OneOf("virtio", "scsi", "sata", "ide")},
			},
			"boot_order": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Place in the order of devices to boot from, from 1. Unique in the machine.",
				Validators: []validator.Int64{int64validator.AtLeast(1)},
			},
			"ephemeral": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Discard what the guest wrote when the machine stops. The volume must be that of a `virtclaim_disk`.",
			},
		}},
	}
}

func pathAttribute(description string, required bool) schema.Attribute {
	return schema.StringAttribute{
		Required: required, Optional: !required, MarkdownDescription: description,
		Validators: []validator.String{stringvalidator.RegexMatches(absolutePath, "must be an absolute path")},
	}
}
