// Package persistentvolumeclaim implements the data source virtclaim_persistent_volume_claim: the properties of a claim, its users, and the
// volume that a binding of it would have.
package persistentvolumeclaim

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
)

// readTimeout is the default timeout.
const readTimeout = 2 * time.Minute

// unreadable is the summary of all errors.
const unreadable = "The claim could not be read"

type persistentVolumeClaim struct{ providerdata.DataSource }

var _ datasource.DataSourceWithConfigure = &persistentVolumeClaim{}

// New creates the data source.
func New() datasource.DataSource {
	return &persistentVolumeClaim{providerdata.DataSource{
		TypeName: "persistent_volume_claim", Unreadable: unreadable, Unasked: "the cluster can't be asked",
	}}
}

// Read queries the API server without a cache: objects that were created in the same apply must be seen.
func (d *persistentVolumeClaim) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m model
	ctx, cancel, ok := d.BeginRead(ctx, req, &m, readTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok {
		return
	}
	client, err := d.Provider.Cluster()
	if err != nil {
		resp.Diagnostics.AddError(unreadable, fmt.Sprintf("%s: %s.", m.Ref(), err))
		return
	}
	lookUp(ctx, client, &m, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	}
}

func lookUp(ctx context.Context, client *cluster.Client, m *model, diags *diag.Diagnostics) {
	ref := m.Ref()
	seen, err := claim.Preview(ctx, client, ref, m.Options(ctx, diags))
	if apierrors.IsNotFound(err) {
		diags.AddAttributeError(path.Root("claim_name"), "No such claim",
			fmt.Sprintf("The %s does not exist: create it, or name another one. Where this configuration makes it, let the data source "+
				"depend on that (depends_on). %s.", ref, err))
		return
	}
	if err == nil {
		err = m.fill(seen)
	}
	if err != nil {
		diags.AddError(unreadable, err.Error())
		return
	}
	for _, w := range seen.Warnings {
		diags.AddWarning("About the volume of the claim", w)
	}
	pods, err := client.PodsUsing(ctx, ref.Namespace, ref.Name)
	switch {
	case apierrors.IsForbidden(err):
		diags.AddWarning("The pods of the claim are not known", fmt.Sprintf("Which pods mount the %s can't be told, and pods is null: %s. "+
			"Permit to list pods in that namespace.", ref, err))
	case err != nil:
		diags.AddError(unreadable, err.Error())
	default:
		m.showPods(pods)
	}
}
