package persistentvolumeclaim

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

func (d *persistentVolumeClaim) Schema(ctx context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reads a PersistentVolumeClaim without a reservation: its properties, its users, and the result of a " +
			"`virtclaim_volume_binding` of it. It changes nothing and reads no secret.\n\n" +
			"It has no `volume` for a machine: only a binding has one, because only a binding prevents other writers.\n\n" +
			"A claim that is not bound, or whose volume can't be used by virtual machines, is not an error: `volume_error` has the " +
			"reason. Use it in a `precondition` or a `check` where that matters. A claim that does not exist is an error.",
		Attributes: merge(arguments(), results(), map[string]schema.Attribute{"timeouts": timeouts.Attributes(ctx)}),
	}
}

// arguments are the attributes of a binding's source, except for create_disk_image and format.
func arguments() map[string]schema.Attribute {
	name := tfvalue.ObjectName()
	return map[string]schema.Attribute{
		"namespace":  schema.StringAttribute{Required: true, MarkdownDescription: "The claim's namespace.", Validators: name},
		"claim_name": schema.StringAttribute{Required: true, MarkdownDescription: "The claim's name.", Validators: name},
		"force_block": schema.BoolAttribute{
			Optional: true, MarkdownDescription: "As in a binding's source: the raw device of a volume with `volumeMode: Filesystem`.",
		},
		"mount_path":  optional("As in a binding's source: where the hosts have a Filesystem volume mounted."),
		"device_path": optional("As in a binding's source: the device as which the hosts have a Block volume."),
		"monitors": schema.ListAttribute{
			Optional: true, ElementType: types.StringType, Validators: []validator.List{listvalidator.SizeAtLeast(1)},
			MarkdownDescription: "As in a binding's source: monitors of a Ceph volume as the hosts reach them.",
		},
		"ceph_config_map": schema.SingleNestedAttribute{
			Optional: true, MarkdownDescription: "As in a binding's source: where ceph-csi has the monitors of its clusters.",
			Attributes: map[string]schema.Attribute{
				"namespace": optional("Its namespace; that of the driver's secret if absent."),
				"name":      optional("Its name; `ceph-csi-config` or `rook-ceph-csi-config` if absent."),
				"key":       optional("The key in it; `config.json` or `csi-cluster-config-json` if absent."),
			},
		},
	}
}

func results() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"uid": computed("UID of the claim; a recreated claim of the same name has another one."),
		"phase": computed("`Pending`, `Bound` or `Lost`. A claim that is being deleted is still `Bound`; `volume_error` " +
			"reports the deletion."),
		"volume_name":   computed("Name of the claim's PersistentVolume; null while it has none."),
		"storage_class": computed("Name of the claim's StorageClass; null if it has none."),
		"volume_mode":   computed("`Block` or `Filesystem`."),
		"capacity": schema.Int64Attribute{
			Computed: true, MarkdownDescription: "Capacity of the bound claim in bytes; null while it is not bound.",
		},
		"access_modes": schema.ListAttribute{
			Computed: true, ElementType: types.StringType,
			MarkdownDescription: "The Kubernetes access modes of the bound claim, such as `ReadWriteMany`; empty while it is not " +
				"bound. The guide on access modes lists which access mode of a binding requires which of them.",
		},
		"pods": schema.ListNestedAttribute{
			Computed: true, MarkdownDescription: "The pods that mount the claim and have not terminated. Null, with a warning, if " +
				"the provider's credentials may not list the pods of the namespace.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name": computed("Name of the pod."),
				"read_only": schema.BoolAttribute{
					Computed: true, MarkdownDescription: "Whether no container of the pod can write to the claim.",
				},
				"node":  computed("Name of its node; null until it is scheduled."),
				"phase": computed("Phase of the pod."),
			}},
		},
		"bindings": schema.ListNestedAttribute{
			Computed: true, MarkdownDescription: "The volume bindings that have reserved the claim, of this configuration or any other.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"id":          computed("`id` of the binding."),
				"owner":       computed("`owner` of its configuration; null if that has none."),
				"name":        computed("`name` of the binding."),
				"access_mode": computed("`access_mode` of the binding. Null, like owner and name, if the record can't be read."),
			}},
		},
		"volume_error": computed("Why the claim can't be bound, at present or permanently; null if it can. The binding checks " +
			"further whether the claim allows its access mode and hosts, and whether the secret is complete."),
		"disk_xml": computed("The libvirt `<disk>` that would open the volume, as a preview: that of a `read-shared` binding, as target " +
			"vda. It has no `<auth>`, because only a binding creates the libvirt secret. Null if `volume_error` is set."),
		"secret_ref": schema.SingleNestedAttribute{
			Computed: true, MarkdownDescription: "The Kubernetes secret from which a binding reads the credentials; null if the " +
				"storage needs none.",
			Attributes: map[string]schema.Attribute{
				"namespace": computed("Its namespace."),
				"name":      computed("Its name."),
			},
		},
	}
}

func optional(description string) schema.Attribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description}
}

func computed(description string) schema.Attribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

func merge(parts ...map[string]schema.Attribute) map[string]schema.Attribute {
	all := map[string]schema.Attribute{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}
