// Package kernel implements the resource virtclaim_kernel: a Linux kernel on one host, with an initial RAM disk that runs container images.
package kernel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// The default timeouts.
const (
	createTimeout = 20 * time.Minute
	readTimeout   = 2 * time.Minute
	deleteTimeout = 10 * time.Minute
)

type kernel struct{ providerdata.Resource }

var _ providerdata.Managed = &kernel{}

// New creates the resource.
func New() resource.Resource {
	return providerdata.WithIdentity(&kernel{providerdata.Resource{TypeName: "kernel"}}, providerdata.OfVolume()...)
}

// Create reads the kernel and puts both files on the host. After a failure nothing is left; an interrupted creation is continued by the
// next one.
func (r *kernel) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan, config model
	resp.Diagnostics.Append(tfvalue.Get(ctx, req.Config.Schema, req.Config.Raw, &config)...)
	ctx, cancel, ok := r.BeginCreate(ctx, req, &plan, createTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok {
		return
	}
	h := r.host(plan, &resp.Diagnostics)
	source := config.source(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	made, err := r.make(ctx, h, &plan, source)
	if err != nil {
		addError(&resp.Diagnostics, plan, "The kernel could not be made", err)
		return
	}
	tfvalue.SavePrivate(ctx, resp.Private, identitiesKey, made, &resp.Diagnostics)
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, plan)...)
}

// Read looks for the two files. If one is gone, an apply replaces the kernel, and so removes what the host has recorded of it.
func (r *kernel) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state model
	ctx, cancel, ok := r.BeginRead(ctx, req, &state, readTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok {
		return
	}
	h := r.host(state, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ids := load(ctx, req.Private, &resp.Diagnostics)
	seen, err := r.observe(ctx, h, state, &ids)
	switch {
	case err != nil:
		addError(&resp.Diagnostics, state, "The kernel could not be read", err)
		return
	case seen.missing != "":
		resp.Diagnostics.AddWarning(fmt.Sprintf("Kernel %s is not complete", state.ID.ValueString()), fmt.Sprintf(
			"The volume %s is not in storage pool %s of host %s any more. An apply makes both files again.", seen.missing,
			state.Pool.ValueString(), h.Key))
		state.Boot = types.ObjectNull(bootTypes)
	default:
		if state.Architecture.IsNull() {
			state.Architecture = tfvalue.OrNull(seen.architecture)
		}
		state.setBoot(seen.kernel, seen.initrd)
	}
	tfvalue.SavePrivate(ctx, resp.Private, identitiesKey, ids, &resp.Diagnostics)
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, state)...)
}

// Update changes the command line, which is in the machines only, and adopts the configuration of an imported kernel.
func (r *kernel) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.Provider.Apply()
	var plan, state model
	resp.Diagnostics.Append(tfvalue.Get(ctx, req.Plan.Schema, req.Plan.Raw, &plan)...)
	resp.Diagnostics.Append(tfvalue.Get(ctx, req.State.Schema, req.State.Raw, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if plan.Digest.IsUnknown() {
		plan.Digest = state.Digest
	}
	if changed := plan.replacedBy(ctx, state, &resp.Diagnostics); len(changed) > 0 {
		addError(&resp.Diagnostics, plan, "The kernel changed during the apply",
			fmt.Errorf("%s was unknown in the plan, and makes it another kernel. Nothing was changed. Plan and apply again", changed[0]))
		return
	}
	plan.setBoot(state.paths())
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, plan)...)
}

// Delete deletes both files, unless a domain boots them.
func (r *kernel) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	r.Provider.Apply()
	defer r.Provider.Destroys()()
	var state model
	ctx, cancel, ok := r.BeginDelete(ctx, req, &state, deleteTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok {
		return
	}
	h := r.host(state, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := r.remove(ctx, h, state, load(ctx, req.Private, &resp.Diagnostics)); err != nil {
		addError(&resp.Diagnostics, state, "The kernel could not be deleted", err)
	}
}

// ImportState takes <host>/<pool>/<volume>, the volume being that of the kernel.
func (r *kernel) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	parts, err := tfvalue.ImportID(req.ID, "<host>/<pool>/<volume>")
	if err == nil && !r.Provider.Ready() {
		err = errors.New("the provider's configuration is not known yet")
	}
	var h *host.Host
	if err == nil {
		h, err = r.Provider.Hosts.Host(parts[0])
	}
	if err == nil {
		err = checkImport(ctx, h, parts[1], parts[2])
	}
	if err != nil {
		resp.Diagnostics.AddError("The kernel could not be imported", err.Error())
		return
	}
	for name, value := range map[string]string{"id": req.ID, "host": parts[0], "pool": parts[1], "name": parts[2]} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
	}
}

// identities are those of the two volumes, by which they are told from others of their names (docs/decisions/0018).
type identities struct {
	Kernel string `json:"kernel"`
	Initrd string `json:"initrd"`
}

const identitiesKey = "identities"

// load returns the identities; empty ones for a kernel that is being imported.
func load(ctx context.Context, private tfvalue.PrivateReader, diags *diag.Diagnostics) identities {
	// without them the volumes are not recognized, and not deleted
	i, _, _ := tfvalue.LoadPrivate[identities](ctx, private, identitiesKey, diags)
	return i
}

func (r *kernel) host(m model, diags *diag.Diagnostics) *host.Host {
	return r.Provider.RecordedHost(m.Host.ValueString(), "kernel "+m.ID.ValueString(), diags)
}

func addError(diags *diag.Diagnostics, m model, summary string, err error) {
	name := m.Name.ValueString()
	if name == "" {
		name = m.NamePrefix.ValueString() + "*"
	}
	diags.AddError(summary, host.Describe("Kernel "+name, m.Host.ValueString(), err))
}
