package function

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// diskXML is a volume as libvirt's element of a disk.
func diskXML() function.Function {
	return pure{"disk_xml", function.Definition{
		Summary: "libvirt's XML of a volume",
		MarkdownDescription: "Returns the `<disk>` element of libvirt's domain XML that opens a volume as a machine of this provider " +
			"would: with its chain of images, as the disk `vda` on the bus `virtio`, read-only or shareable by its access mode. It is " +
			"for domains that others define, for example with `virsh attach-device`.\n\n" +
			"What this provider does not run it does not guard: if two domains write to one volume, that is your affair, and a " +
			"reservation does not prevent it. Such a domain is only seen when a machine of this provider is to use the volume, too, or " +
			"when a `virtclaim_disk` is to be removed: both are refused. Credentials are libvirt secrets on the " +
			"hosts of the binding, and removed with it: the element has their UUIDs.",
		Parameters: []function.Parameter{function.ObjectParameter{
			Name: "volume", AttributeTypes: tfvalue.VolumeTypes,
			MarkdownDescription: "The `volume` of a `virtclaim_volume_binding`, a `virtclaim_disk` or a `virtclaim_volume_content`. A " +
				"shared folder is no disk, and is refused.",
		}},
		Return: function.StringReturn{},
	}, func(ctx context.Context, is, _ attr.Value) (any, error) {
		// Terraform calls no function with a value that is partly unknown, as it is in a plan. OpenTofu does.
		if raw, err := is.ToTerraformValue(ctx); err != nil || !raw.IsFullyKnown() {
			return types.StringUnknown(), err
		}
		v, _, diags := tfvalue.VolumeFrom(is.(types.Object))
		if diags.HasError() {
			return nil, errors.New(diags[0].Detail())
		}
		return domainxml.GuestDiskXML(v)
	}}
}
