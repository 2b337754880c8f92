package kernel

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/resource/imagesource"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// The children of source, exactly one of which is set.
const (
	fromContainer = "container_image"
	fromURL       = "url"
	fromFile      = "file"
	fromHost      = "host_path"
)

func (r *kernel) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A Linux kernel on one host, with an initial RAM disk that runs container images: machines boot both " +
			"directly, and share them. The kernel is taken from a distribution's package; the initial RAM disk has those of its modules " +
			"that a machine needs, and a small init.\n\nChanging anything but `cmdline` and `timeouts` forces a new resource. With " +
			"`name_prefix` and `create_before_destroy`, machines change to the new kernel, at their next start, before the old one is " +
			"deleted. Without these, a kernel that a machine has is not replaced: one that a domain of the host still boots is not " +
			"deleted.",
		Attributes: map[string]schema.Attribute{
			"id":   tfvalue.Constant("`<host>/<pool>/<volume>`, which is also the import id."),
			"host": tfvalue.Required("Key of the provider's `hosts` that has the kernel."),
			"name": tfvalue.VolumeName("Name of the storage volume with the kernel, unique in its pool; that of the initial RAM disk has "+
				"`-initrd` appended.", 190),
			"name_prefix": tfvalue.VolumeNamePrefix("Prefix of a generated name. For kernels that are replaced with "+
				"`create_before_destroy`.", 170),
			"usage_type": tfvalue.UsageType("Kind of storage for the two files, whose pool must be a folder"),
			"source":     sourceAttribute(),
			"cmdline":    tfvalue.Optional("Command line of the kernel. Defaults to `quiet panic=-1` with the serial port as console."),
			"digest": tfvalue.Computed("Digest of the source: that of the container image, the checksum of the URL, or that of " +
				"the file."),
			"pool": tfvalue.Constant("The libvirt storage pool of the two files."),
			"release": tfvalue.Computed("Release of the kernel's modules, such as `6.12.48+deb13-amd64`; null for a kernel without " +
				"modules."),
			"architecture": tfvalue.Constant("Architecture of the kernel: `amd64` or `arm64`."),
			"boot": schema.ObjectAttribute{
				Computed: true, AttributeTypes: bootTypes,
				MarkdownDescription: "Paths of `kernel` and `initrd` on the host, and the `cmdline`, for the `boot` of a " +
					"`virtclaim_virtual_machine`.",
			},
			"timeouts": tfvalue.Timeouts(ctx, createTimeout, readTimeout, 0, deleteTimeout),
		},
	}
}

func sourceAttribute() schema.Attribute {
	const files = "It has `boot/vmlinuz-<release>` or `lib/modules/<release>/vmlinuz` and, unless all drivers are built in, " +
		"`lib/modules/<release>`, perhaps below `usr`; of Alpine's `boot/vmlinuz-virt`, the one such folder."
	var one []path.Expression
	for _, name := range []string{fromContainer, fromURL, fromFile, fromHost} {
		one = append(one, path.MatchRoot("source").AtName(name))
	}
	return schema.SingleNestedAttribute{
		Required: true, MarkdownDescription: "Where the kernel comes from: exactly one of these.",
		Attributes: map[string]schema.Attribute{
			fromContainer: imagesource.UnpackedAttribute("A container image with the files of a distribution's package. " + files +
				" Of a multi-platform image, that for the host's architecture is used. Moving a tag has no effect on an existing kernel."),
			fromURL: imagesource.URLAttribute("A Debian or RPM package (`linux-image-*.deb`; Ubuntu and Fedora have the modules in one "+
				"of their own: make a container image with both), a package of Alpine (`linux-virt-*.apk`), a tar archive with the same "+
				"files, or a kernel alone, on a web server. "+files+" A tar archive and a kernel may be compressed with gzip, xz or zstd.",
				"With it, changing `url` does not force a new resource."),
			fromFile: imagesource.FileAttribute("The same in a file on the computer that runs Terraform. The file is hashed at each "+
				"plan; changed content forces a new resource.",
				"After the kernel was created, a file that is missing, there or in another folder, is not a change."),
			fromHost: tfvalue.Optional("Path of a kernel on the host, which stays where it is, and is the user's. It must have the "+
				"drivers for virtio, ext4 and fw_cfg built in.", tfvalue.AbsolutePath(), stringvalidator.ExactlyOneOf(one...)),
		},
	}
}
