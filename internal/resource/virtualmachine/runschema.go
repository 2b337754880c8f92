package virtualmachine

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var (
	runTypes     = attributesOf(runAttributes()["run"].GetType())
	mountTypes   = attributesOf(runTypes["mounts"])
	networkTypes = attributesOf(runTypes["network"])
)

func runAttributes() map[string]schema.Attribute {
	text := func(description string, validators ...validator.String) schema.Attribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: validators}
	}
	list := func(description string) schema.Attribute {
		return schema.ListAttribute{
			Optional: true, ElementType: types.StringType, MarkdownDescription: description,
			Validators: []validator.List{listvalidator.SizeAtLeast(1)},
		}
	}
	return map[string]schema.Attribute{"exit_code": schema.Int64Attribute{
		Computed: true,
		MarkdownDescription: "Exit code of what `run` has run last, if the machine is off: 128 and more is a signal's number and 128. " +
			"Null while it runs, and if its power was cut. The guest has written it.",
	}, "run": schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Runs a container image as the machine's main program: see the guide on [container " +
			"images](../guides/container-images.md). The machine boots a `virtclaim_kernel`, and has a `virtclaim_disk` with the image's " +
			"root file system. When the program ends, the machine powers off. Its output, and `virtclaim: exit <code>` at its end, are " +
			"on the serial port." + atNextStart,
		Attributes: map[string]schema.Attribute{
			"image": schema.ObjectAttribute{
				Optional: true, AttributeTypes: tfvalue.ImageConfigurationTypes,
				MarkdownDescription: "The `image_configuration` of the root disk: what is run unless other attributes say otherwise.",
			},
			"root":       text("Key of the disk with the root file system. Defaults to `root`."),
			"entrypoint": list("Program with its first arguments, instead of the image's. The image's command is not used then."),
			"command":    list("Arguments of the entrypoint, instead of the image's."),
			"environment": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Environment variables, beside the image's. All of them are in state, plan and domain XML.",
			},
			"environment_from": list("Keys of disks with further variables, of which later ones override: `virtclaim_disk` with " +
				"`source.environment`. For secrets: they are in neither state nor plan nor domain XML."),
			"user": text("User of the program, by name or number, perhaps with a group behind a colon, instead of the "+
				"image's.", notEmpty...),
			"working_directory": text("Folder in which the program starts, instead of the image's.", tfvalue.AbsolutePath()),
			"stop_signal": text("Signal that asks the program to end, such as `SIGQUIT`, instead of the image's. Defaults to "+
				"`SIGTERM`.", notEmpty...),
			"stop_timeout": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "Seconds after which a program is killed that has not ended. Defaults to 10. `force_stop` cuts " +
					"the power after a minute.",
				Validators: []validator.Int64{int64validator.AtLeast(1)},
			},
			"hostname": text("Host name. Defaults to the machine's `name`, as far as that is one.", notEmpty...),
			"mounts": schema.MapNestedAttribute{
				Optional: true,
				MarkdownDescription: "File systems of other disks, by their keys in `disks`: ext4, xfs or vfat, without a partition " +
					"table. An ext4 that is not mounted read-only grows with its disk, at the next start.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"path": schema.StringAttribute{
						Required: true, MarkdownDescription: "Folder to mount it on, which is created if it is missing.",
						Validators: []validator.String{tfvalue.AbsolutePath()},
					},
					"read_only": schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether it is mounted read-only."},
					"format": text("File system that the disk gets at the machine's start if it is blank: `ext4`. Its root "+
						"directory has owner and mode of the folder in the image. A disk that begins or ends with anything but "+
						"zeros is never formatted. Needs a volume with the access mode `write-exclusive`.",
						stringvalidator.OneOf(guestinit.FormatExt4)),
				}},
			},
			"network": schema.MapNestedAttribute{
				Optional: true,
				MarkdownDescription: "Addresses of interfaces, by their keys in `interfaces`, which need a `mac` then. All other " +
					"interfaces are configured by DHCP.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"addresses": schema.ListAttribute{
						Required: true, ElementType: types.StringType,
						MarkdownDescription: "Addresses with the length of their prefix, such as `10.0.0.5/24`.",
						Validators:          []validator.List{listvalidator.SizeAtLeast(1)},
					},
					"gateway":     text("Address of the router."),
					"nameservers": list("Addresses of DNS servers."),
					"search":      list("Domains in which names without a domain are looked up."),
				}},
			},
			"once": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether the program is a job: when it has ended by itself, the machine stays off, and counts as " +
					"`running`. It runs again when the machine is replaced (`-replace`), or `running` is applied as false and then as " +
					"true. A job that was stopped, or lost its power, is started by the next apply.",
			},
			"timestamps": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Whether each line of output begins with its time (UTC).",
			},
			"tty": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether the program has the console as its terminal, for a shell in `virsh console`. Otherwise " +
					"its output is a pipe, as in container engines, and its input is empty.",
			},
			"restart": text("Whether the program is started again after it has ended: `never` (default), `on-failure` (exit code other "+
				"than 0) or `always`. Not after a shutdown.",
				stringvalidator.OneOf(guestinit.RestartNever, guestinit.RestartOnFailure, guestinit.RestartAlways)),
		},
	}}
}
