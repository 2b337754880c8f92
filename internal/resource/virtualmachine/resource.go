// Package virtualmachine implements the resource virtclaim_virtual_machine: a libvirt domain on one host.
package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/machine"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// The default timeouts.
const (
	createTimeout = 10 * time.Minute
	readTimeout   = 2 * time.Minute
	updateTimeout = 10 * time.Minute
	deleteTimeout = 10 * time.Minute
)

type virtualMachine struct{ providerdata.Resource }

var _ providerdata.Managed = &virtualMachine{}

// New creates the resource.
func New() resource.Resource {
	return providerdata.WithIdentity(&virtualMachine{providerdata.Resource{TypeName: "virtual_machine"}},
		providerdata.AtRoot("host", "Key of the host in the provider's `hosts`."), providerdata.AtRoot("uuid", "UUID of the domain."))
}

// prepare returns what an apply makes of a plan, and the manager that does it; otherwise the error is in diags.
func (r *virtualMachine) prepare(ctx context.Context, plan model, config tfsdk.Config,
	diags *diag.Diagnostics,
) (want domainxml.Machine, mgr machine.Manager, ok bool) {
	plan.check(ctx, diags)
	want = plan.intent(ctx, diags)
	readPassword(ctx, config, &want, diags)
	h, err := r.Provider.Hosts.Host(plan.Host.ValueString())
	if err != nil {
		diags.AddAttributeError(path.Root("host"), "Unknown host", err.Error())
	}
	if diags.HasError() || !hostSupports(ctx, h, plan, want, diags) {
		return want, mgr, false
	}
	mgr = r.manager(h, plan.Host.ValueString())
	mgr.Warn, mgr.ByAgent = diags.AddWarning, plan.ShutdownMode.ValueString() != acpiMode
	if _, keys := plan.waitFor(ctx, diags); len(keys) > 0 {
		mgr.Leases = map[host.Lease]int64{}
	}
	return want, mgr, true
}

// Create defines the domain, or resumes the interrupted creation by an apply of the same owner, and starts it. The state is written as soon
// as the domain exists; if the domain can't be started, it is undefined again.
func (r *virtualMachine) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan model
	ctx, cancel, ok := r.BeginCreate(ctx, req, &plan, createTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok || !r.reserveName(ctx, &plan, &resp.Diagnostics) {
		return
	}
	if !r.create(ctx, plan, req, resp) {
		r.Provider.ReleaseName(plan.Host.ValueString() + "/" + plan.Name.ValueString())
	}
}

// create reports whether the machine is in the state.
func (r *virtualMachine) create(ctx context.Context, plan model, req resource.CreateRequest, resp *resource.CreateResponse) bool {
	want, mgr, ok := r.prepare(ctx, plan, req.Config, &resp.Diagnostics)
	if !ok || !r.checkHostDevices(ctx, plan, model{}, &resp.Diagnostics) {
		return false
	}
	uuid, runs, err := r.define(ctx, mgr, want)
	if err != nil {
		addError(&resp.Diagnostics, plan, "The machine could not be defined", err)
		return false
	}
	plan.UUID = types.StringValue(uuid)
	if err = plan.start(ctx, mgr, want, resp); err == nil {
		return true
	}
	summary := "The machine could not be started"
	switch {
	case errors.Is(err, machine.ErrTakenOver):
		summary = "The machine is in another state"
	case runs:
		// Its guest may have run for long, and have data to lose.
		err = fmt.Errorf("%w\n\nAn interrupted apply has left it running, "+
			"and it is left so: the next apply goes on with it", err)
	default:
		if undo := mgr.RevertCreation(ctx, uuid); undo != nil {
			addError(&resp.Diagnostics, plan, summary,
				fmt.Errorf("%w\n\nLeft behind: the domain, because it could not be removed: %w", err, undo))
			return true
		}
	}
	resp.State.RemoveResource(ctx)
	addError(&resp.Diagnostics, plan, summary, err)
	return false
}

// define defines the machine, again while this apply destroys one of its name.
func (r *virtualMachine) define(ctx context.Context, mgr machine.Manager, want domainxml.Machine) (uuid string, runs bool, err error) {
	r.Provider.RetryTaken(ctx, func() bool {
		uuid, runs, err = mgr.Define(ctx, want)
		return errors.Is(err, machine.ErrNameTaken)
	})
	return uuid, runs, err
}

// start writes the state of a machine that has just been defined, starts it, and finalizes it.
func (m *model) start(ctx context.Context, mgr machine.Manager, want domainxml.Machine, resp *resource.CreateResponse) error {
	is, _, err := mgr.Observe(ctx, m.UUID.ValueString())
	if err != nil {
		return err
	}
	m.complete(ctx, is)
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, *m)...)
	if err := mgr.AcquireAndStart(ctx, m.UUID.ValueString(), want, m.Running.ValueBool()); err != nil {
		return err
	}
	err = m.finalize(ctx, mgr, want, &resp.Diagnostics)
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, *m)...)
	return err
}

// finalize sets what is known only after the start, and then marks the creation as finished: an interrupted one is resumed by the next
// apply. Other errors than machine.ErrTakenOver are warnings, because Terraform would destroy the machine.
func (m *model) finalize(ctx context.Context, mgr machine.Manager, want domainxml.Machine, diags *diag.Diagnostics) error {
	m.await(ctx, mgr, diags)
	ctx, cancel := revert.Context(ctx) // the waiting may have used up the timeout
	defer cancel()
	if is, _, err := mgr.Observe(ctx, m.UUID.ValueString()); err == nil {
		m.State = types.StringValue(is.State)
		readAddresses(m, is)
		readPending(m, is)
		readEndpoints(m, is)
		m.warnOfPending(is.Pending, diags)
		if m.WaitFor.IsNull() { // otherwise that has said it
			m.warnOfProgram(is, diags)
		}
	}
	err := mgr.Finish(ctx, m.UUID.ValueString(), want)
	if errors.Is(err, machine.ErrTakenOver) {
		return err
	}
	if err != nil {
		diags.AddWarning("The machine is not marked as wholly created",
			fmt.Sprintf("It is there as configured; its next update marks it. %s", err))
	}
	return nil
}

// manager returns the manager of the machines on a host.
func (r *virtualMachine) manager(h *host.Host, key string) machine.Manager {
	mgr := machine.New(h, key, r.Provider.Owner, r.Provider.Hosts,
		machine.Log{Info: tflog.Info, Warn: tflog.Warn, Progress: tfvalue.Progress})
	mgr.Disks = r.Provider.Mover()
	return mgr
}

// Read reads the machine from the host. Only libvirt's own not-found error removes it from the state; a domain of its name with another
// UUID is a different machine.
func (r *virtualMachine) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	if !r.Provider.Ready() {
		return
	}
	r.Provider.Refreshes()
	var state model
	ctx, cancel, ok := r.BeginRead(ctx, req, &state, readTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok || state.Host.IsNull() && !r.findMoved(ctx, &state, &resp.Diagnostics) {
		return
	}

	h := r.Provider.RecordedHost(state.Host.ValueString(), "machine "+state.ID.ValueString(), &resp.Diagnostics)
	if h == nil {
		return
	}
	before := state
	mgr, is, at, isLeft, err := r.find(ctx, h, &state, &resp.Diagnostics)
	switch {
	case errors.Is(err, guard.ErrMigrated):
		resp.Diagnostics.AddWarning("A machine is missing or was migrated",
			fmt.Sprintf("Machine %s on host %s: %s. Until then it is neither read nor changed.",
				state.Name.ValueString(), state.Host.ValueString(), err))
		return
	case errors.Is(err, host.ErrNotFound):
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		addError(&resp.Diagnostics, state, "The machine could not be read", err)
		return
	}
	state.warnOfExternal(ctx, is, &resp.Diagnostics)
	state.warnOfProgram(is, &resp.Diagnostics)
	state.read(is, at.IsOn())
	if err := state.examine(ctx, mgr, at, before.Running.ValueBool(), &resp.Diagnostics); err != nil {
		addError(&resp.Diagnostics, state, "The machine could not be read", err)
		return
	}
	if isLeft && !at.IsMoving() {
		state.State = types.StringValue(state.State.ValueString() + moving)
	}
	if reflect.DeepEqual(before, state) {
		return // the response has the prior state already; writing it again would double the cost of a plan
	}
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, state)...)
}

// find reads the machine from the host that has it: one that was moved outside of Terraform, or by an apply that was interrupted, is on
// another one.
func (r *virtualMachine) find(ctx context.Context, h *host.Host, state *model, diags *diag.Diagnostics) (mgr machine.Manager,
	is domainxml.Machine, at machine.Observation, isLeft bool, err error,
) {
	mgr = r.manager(h, state.Host.ValueString())
	is, at, err = mgr.Read(ctx, state.UUID.ValueString(), state.Running.ValueBool())
	var moved *guard.MovedError
	if !errors.As(err, &moved) {
		return mgr, is, at, false, err
	}
	if h, err = r.Provider.Hosts.Host(moved.To); err != nil {
		return mgr, is, at, false, err
	}
	diags.AddWarning(fmt.Sprintf("Machine %s is on host %s", state.Name.ValueString(), moved.To), fmt.Sprintf("It was on host %s at the "+
		"last apply, and was moved since. With host = %q an apply accepts that; otherwise it moves the machine to its host.",
		state.Host.ValueString(), moved.To))
	mgr = r.manager(h, moved.To)
	state.Host = types.StringValue(moved.To)
	is, at, err = mgr.Read(ctx, state.UUID.ValueString(), false)
	return mgr, is, at, moved.IsLeft, err
}

// Update plugs and unplugs disks, writes the persistent definition, and starts or stops the machine. A warning names the changes that a
// running guest gets only at its next start; a domain is never undefined to be changed.
func (r *virtualMachine) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.Provider.Apply()
	defer r.Provider.Destroys()() // a disk that is taken away, for one
	var plan, state model
	ctx, cancel, _ := r.BeginUpdate(ctx, req, &plan, &state, updateTimeout, &resp.Diagnostics)
	defer cancel()
	plan.keepSettings(ctx, &resp.State, &resp.Diagnostics)
	addChanged(&resp.Diagnostics, state,
		plan.replacedBy(state, state.machine(), plan.machine()))
	want, mgr, ok := r.prepare(ctx, plan, req.Config, &resp.Diagnostics)
	moves := plan.moves(state)
	if !ok || !r.checkHostDevices(ctx, plan, state, &resp.Diagnostics) ||
		!r.move(ctx, plan, &state, want, mgr, &resp.State, &resp.Diagnostics) ||
		!r.rename(ctx, plan, &state, mgr, &resp.State, &resp.Diagnostics) {
		return
	}
	now, pending, started, err := mgr.Update(ctx, plan.UUID.ValueString(), want, plan.power(state))
	if err == nil && !moves && strings.HasSuffix(state.State.ValueString(), moving) {
		err = mgr.RemoveLeft(ctx, plan.UUID.ValueString()) // it is stored here by now
	}
	if err != nil {
		addError(&resp.Diagnostics, plan, "The machine could not be updated", err)
		return
	}
	plan.warnOfPending(pending, &resp.Diagnostics)
	if started || moves || plan.waits(state) {
		plan.await(ctx, mgr, &resp.Diagnostics)
		now = machine.Observation{} // it has changed since
	}
	is, err := mgr.Describe(ctx, plan.UUID.ValueString(), now)
	if err != nil {
		addError(&resp.Diagnostics, plan, "The machine was changed but could not be read", err)
		return
	}
	plan.complete(ctx, is)
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, plan)...)
}

// Delete shuts the machine down and undefines it. A domain that is already gone is no error.
func (r *virtualMachine) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer r.Provider.Destroys()()
	var state model
	ctx, cancel, ok := r.BeginDelete(ctx, req, &state, deleteTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok {
		return
	}

	h := r.Provider.RecordedHost(state.Host.ValueString(), "machine "+state.ID.ValueString(), &resp.Diagnostics)
	if h == nil {
		return
	}
	mgr := r.manager(h, state.Host.ValueString())
	mgr.ByAgent = state.ShutdownMode.ValueString() != acpiMode
	var err error
	if strings.HasSuffix(state.State.ValueString(), moving) { // before it ends here: then what is left would seem to be it
		err = mgr.RemoveLeft(ctx, state.UUID.ValueString())
	}
	if err == nil {
		err = mgr.Delete(ctx, state.UUID.ValueString(), state.was(ctx), state.ForceStop.ValueBool())
	}
	if err != nil {
		addError(&resp.Diagnostics, state, "The machine could not be removed", state.ofDestroy(err))
		return
	}
	r.Provider.ReleaseName(state.Host.ValueString() + "/" + state.Name.ValueString())
	for _, name := range state.names() {
		r.Provider.RemovedDisks.Store(name, state.Disks)
	}
}

// complete sets the computed attributes; known values of the plan stay.
func (m *model) complete(ctx context.Context, is domainxml.Machine) {
	actual := *m
	actual.read(is, m.Running.ValueBool())
	m.ID, m.UUID = actual.ID, actual.UUID
	if m.State.IsUnknown() {
		m.State = actual.State
	}
	m.Machine = tfvalue.AsPlanned(ctx, m.Machine, actual.Machine)
	m.fillMACs(is)
	m.changeDisks(func(key string, values map[string]attr.Value) {
		if values["target"].IsUnknown() {
			values["target"] = types.StringValue(is.Disks[key].Target)
		}
	})
	m.fillAddresses(actual.Addresses)
	if m.Pending.IsUnknown() {
		m.Pending = actual.Pending
	}
	if m.Endpoints.IsUnknown() {
		m.Endpoints = actual.Endpoints
	}
	if m.ExitCode.IsUnknown() {
		m.ExitCode = actual.ExitCode
	}
}

func addError(diags *diag.Diagnostics, m model, summary string, err error) {
	diags.AddError(summary, host.Describe("Machine "+m.Name.ValueString(), m.Host.ValueString(), err))
}
