package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// planTime is the timeout of a plan for a host that does not answer.
const planTime = 10 * time.Second

// checkCapabilities refuses what the host does not support, before anything is created or changed. Each group has its rules in able.
func checkCapabilities(ctx context.Context, h *host.Host, m model, want domainxml.Machine, diags *diag.Diagnostics) error {
	caps, err := h.DomainCapabilities(ctx, host.Hardware{Arch: want.Arch, Type: want.Type, DomainType: want.DomainType})
	var missing *host.CannotEmulateError
	if errors.As(err, &missing) {
		remedy := ""
		if missing.What == "domain_type" {
			remedy = " Without KVM (virt-host-validate qemu says why), machine = { domain_type = \"qemu\" } emulates the machine, which " +
				"takes ten times as long."
		}
		diags.AddAttributeError(path.Root("machine").AtName(missing.What), "The host can't emulate this",
			fmt.Sprintf("Host %s has no %s = %q. It has: %s.%s", h.Key, missing.What, missing.Asked, strings.Join(missing.Has, ", "),
				remedy))
		return nil
	}
	if err != nil {
		return err
	}
	m.checkImageFor(caps.Arch, diags)
	for _, g := range groups {
		if g.able != nil {
			g.able(caps, want, diags)
		}
	}
	return nil
}

// hostSupports reports whether the host supports the machine, and adds an error if not.
func hostSupports(ctx context.Context, h *host.Host, m model, want domainxml.Machine, diags *diag.Diagnostics) bool {
	if err := checkCapabilities(ctx, h, m, want, diags); err != nil {
		addError(diags, m, "The host could not be asked what it is capable of", err)
	}
	return !diags.HasError()
}

// unsupported is the error of a value that the host does not support, with the values that it does.
func unsupported(diags *diag.Diagnostics, at path.Path, what, asked string, has []string) {
	diags.AddAttributeError(at, "Not supported by the host",
		fmt.Sprintf("There is no %s %q on this host for such a machine. There is: %s.", what, asked, strings.Join(has, ", ")))
}

// planCapabilities is checkCapabilities for a plan, as far as the machine is known. A host that does not answer is ignored.
func (r *virtualMachine) planCapabilities(ctx context.Context, plan, given model, diags *diag.Diagnostics) {
	var ignored diag.Diagnostics
	emulated := plan.emulated(given)
	if emulated.Type.IsUnknown() || emulated.Arch.IsUnknown() || emulated.DomainType.IsUnknown() {
		return
	}
	h, err := r.Provider.Hosts.Host(plan.Host.ValueString())
	if err != nil || h.Unresponsive() || diags.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	if err := checkCapabilities(ctx, h, plan, plan.intent(ctx, &ignored), diags); err != nil {
		tflog.Warn(ctx, "What the host is capable of is not known", map[string]any{"host": h.Key, "error": err.Error()})
	}
}

// resolve queries the host for the hardware of a planned machine: the host chooses defaults and resolves aliases. ok is false if a value is
// unknown or the host does not answer.
func (r *virtualMachine) resolve(ctx context.Context, hostKey types.String, m machineModel) (is host.Hardware, ok bool) {
	if !r.Provider.Ready() || !isSet(hostKey) || m.Type.IsUnknown() || m.Arch.IsUnknown() || m.DomainType.IsUnknown() {
		return is, false
	}
	h, err := r.Provider.Hosts.Host(hostKey.ValueString())
	if err != nil || h.Unresponsive() {
		return is, false
	}
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	caps, err := h.DomainCapabilities(ctx, m.hardware())
	return caps.Hardware, err == nil
}

// resolved is the planned machine with its host's choices, as far as they are known. Configured names that are known on all hosts are kept.
func (r *virtualMachine) resolved(ctx context.Context, hostKey types.String, m machineModel) machineModel {
	is, ok := r.resolve(ctx, hostKey, m)
	switch {
	case ok && m.Type.IsNull():
		m.Type, m.Arch = types.StringValue(is.Type), types.StringValue(is.Arch)
	case ok && !domainxml.SameMachineType(m.Type.ValueString(), is.Type):
		m.Type = types.StringValue(is.Type)
	}
	return m
}

// spelling is the planned machine type, in the spelling of the state if both mean the same: an alias alone does not replace a machine.
// Aliases are known to hosts only, and the domain may be older than the present meaning of its alias. If the machine is replaced for
// another reason, no host is queried.
func (r *virtualMachine) spelling(ctx context.Context, state model, was, is machineModel, stays bool,
	diags *diag.Diagnostics,
) types.String {
	switch {
	case !isSet(is.Type):
		return is.Type
	case domainxml.SameMachineType(was.Type.ValueString(), is.Type.ValueString()):
		return was.Type
	case !stays || diags.HasError():
		return is.Type
	}
	switch same, known := r.isStored(ctx, state, machineModel{Type: is.Type, Arch: was.Arch, DomainType: was.DomainType}); {
	case !known:
		diags.AddAttributeError(path.Root("machine").AtName("type"), "Whether this is another machine is not known",
			fmt.Sprintf("The machine is of type %s and is to be of type %s, which may be two names of one. Host %s did not say so; plan "+
				"again when it answers.", was.Type.ValueString(), is.Type.ValueString(), state.Host.ValueString()))
	case same:
		return was.Type
	}
	return is.Type
}

// isStored reports whether a machine type is, or is an alias of, the one in the persistent definition.
func (r *virtualMachine) isStored(ctx context.Context, state model, is machineModel) (same, known bool) {
	wanted, ok := r.resolve(ctx, state.Host, is)
	if !ok {
		return false, false
	}
	h, err := r.Provider.Hosts.Host(state.Host.ValueString())
	if err != nil {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	stored, err := r.manager(h, state.Host.ValueString()).ReadStored(ctx, state.UUID.ValueString())
	return err == nil && stored.Type() == wanted.Type, err == nil
}
