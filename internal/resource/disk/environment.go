package disk

import (
	"context"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

type environmentModel struct {
	VariablesWO        types.Map          `tfsdk:"variables_wo"`
	VariablesWOVersion types.Int64        `tfsdk:"variables_wo_version"`
	SecretRef          *tfvalue.SecretRef `tfsdk:"secret_ref"`
}

func environmentAttribute() schema.Attribute {
	beside := func(name string) path.Expression { return path.MatchRelative().AtParent().AtName(name) }
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Environment variables for machines that run container images (`run.environment_from` of " +
			"`virtclaim_virtual_machine`), in a small read-only volume. Other values make a new disk, which takes effect at a machine's " +
			"next start. All users that can read the storage pool of the host, or the disk in the guest, can read them.",
		Attributes: map[string]schema.Attribute{
			"variables_wo": schema.MapAttribute{
				Optional: true, WriteOnly: true, ElementType: types.StringType,
				MarkdownDescription: "Variables, write-only (Terraform 1.11 or newer): never in state or plan. Change " +
					"`variables_wo_version` with them. They override those of the secret.",
				Validators: []validator.Map{mapvalidator.AlsoRequires(beside("variables_wo_version"))},
			},
			"variables_wo_version": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Any number; changing it makes a new disk.",
				Validators: []validator.Int64{
					int64validator.AlsoRequires(beside("variables_wo")),
					int64validator.AtLeastOneOf(beside("secret_ref")),
				},
			},
			"secret_ref": tfvalue.SecretRefAttribute("A Kubernetes secret, each of whose keys is a variable, as of `envFrom` of a pod. " +
				"Another version of it makes a new disk."),
		},
	}
}

func (e environmentModel) parts() []part {
	return []part{{version: e.VariablesWOVersion}, {secret: e.SecretRef}}
}

// environment reads the variables. Errors have none of their values.
func (r *disk) environment(ctx context.Context, e environmentModel) ([]byte, error) {
	all := map[string]string{}
	if e.SecretRef != nil {
		client, err := r.Provider.Cluster()
		if err != nil {
			return nil, err
		}
		secret, err := client.Secret(ctx, e.SecretRef.Namespace.ValueString(), e.SecretRef.Name.ValueString())
		if err != nil {
			return nil, err
		}
		for name, value := range secret.Data {
			all[name] = string(value)
		}
	}
	own := map[string]string{}
	if diags := e.VariablesWO.ElementsAs(ctx, &own, false); diags.HasError() {
		return nil, fmt.Errorf("variables_wo: %s", diags[0].Summary())
	}
	maps.Copy(all, own)
	return guestinit.EncodeEnvironment(all)
}
