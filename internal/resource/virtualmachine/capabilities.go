package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// planTime is how long a plan waits for a host that does not answer.
const planTime = 10 * time.Second

// checkCapabilities refuses what the host can't give to the machine, before anything is made or changed. Each group has its
// rules in able.
func checkCapabilities(ctx context.Context, h *host.Host, want domainxml.Machine, diags *diag.Diagnostics) error {
	caps, err := h.DomainCapabilities(ctx, host.Hardware{Arch: want.Arch, Type: want.Type, DomainType: want.DomainType})
	var missing *host.CannotEmulateError
	if errors.As(err, &missing) {
		diags.AddAttributeError(path.Root("machine").AtName(missing.What), "The host can't emulate this",
			fmt.Sprintf("Host %s has no %s = %q. It has: %s.", h.Key, missing.What, missing.Asked, strings.Join(missing.Has, ", ")))
		return nil
	}
	if err != nil {
		return err
	}
	for _, g := range groups {
		if g.able != nil {
			g.able(caps, want, diags)
		}
	}
	return nil
}

// hostSupports tells whether the host can give to the machine what it is to have, and says why not.
func hostSupports(ctx context.Context, h *host.Host, m model, want domainxml.Machine, diags *diag.Diagnostics) bool {
	if err := checkCapabilities(ctx, h, want, diags); err != nil {
		addError(diags, m, "The host could not be asked what it is capable of", err)
	}
	return !diags.HasError()
}

// unsupported says that the host has not what an attribute asks for, and what it has.
func unsupported(diags *diag.Diagnostics, at path.Path, what, asked string, has []string) {
	diags.AddAttributeError(at, "The host can't do this",
		fmt.Sprintf("There is no %s %q on this host for such a machine. There is: %s.", what, asked, strings.Join(has, ", ")))
}

// planCapabilities is checkCapabilities for a plan, as far as that is known: what is unknown asks for nothing. A host that
// does not answer is none of its business.
func (r *machine) planCapabilities(ctx context.Context, plan model, config tfsdk.Config, diags *diag.Diagnostics) {
	var given model
	var ignored diag.Diagnostics
	ignored.Append(config.Get(ctx, &given)...)
	emulated := plan.emulated(ctx, given, &ignored)
	if emulated.Type.IsUnknown() || emulated.Arch.IsUnknown() || emulated.DomainType.IsUnknown() {
		return
	}
	h, err := r.backend.Hosts.Host(plan.Host.ValueString())
	if err != nil || h.Silent() || diags.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	if err := checkCapabilities(ctx, h, plan.intent(ctx, &ignored), diags); err != nil {
		tflog.Warn(ctx, "What the host is capable of is not known", map[string]any{"host": h.Key, "error": err.Error()})
	}
}

// resolve asks the host what it makes of a machine as planned: it makes a choice where there is none, and knows what an alias
// stands for. ok is false where that is not known, because something else is not or the host does not answer.
func (r *machine) resolve(ctx context.Context, hostKey types.String, m machineModel) (is host.Hardware, ok bool) {
	if !r.backend.Ready() || !isSet(hostKey) || m.Type.IsUnknown() || m.Arch.IsUnknown() || m.DomainType.IsUnknown() {
		return is, false
	}
	h, err := r.backend.Hosts.Host(hostKey.ValueString())
	if err != nil || h.Silent() {
		return is, false
	}
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	caps, err := h.DomainCapabilities(ctx, m.hardware())
	return caps.Hardware, err == nil
}

// resolved is a machine as planned with what its host chooses, as far as that is known. What the user has said in words that
// are known everywhere stays in those.
func (r *machine) resolved(ctx context.Context, hostKey types.String, m machineModel) machineModel {
	is, ok := r.resolve(ctx, hostKey, m)
	switch {
	case ok && m.Type.IsNull():
		m.Type, m.Arch = types.StringValue(is.Type), types.StringValue(is.Arch)
	case ok && !domainxml.SameMachineType(m.Type.ValueString(), is.Type):
		m.Type = types.StringValue(is.Type)
	}
	return m
}

// spelling is the planned machine type in the state's words where both mean the same: a machine is not replaced for a name. Which
// aliases there are, and what they stand for, only hosts know, and the domain may be older than what its alias stands for now. One
// that does not stay as it is in all else needs no answer.
func (r *machine) spelling(ctx context.Context, state model, was, is machineModel, stays bool, diags *diag.Diagnostics) types.String {
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
			fmt.Sprintf("The machine is of type %s and is to be of type %s, which may be two names of one. Host %s did not say so; plan again "+
				"when it answers.", was.Type.ValueString(), is.Type.ValueString(), state.Host.ValueString()))
	case same:
		return was.Type
	}
	return is.Type
}

// isStored tells whether a machine type is, or stands for, the one that libvirt has stored.
func (r *machine) isStored(ctx context.Context, state model, is machineModel) (same, known bool) {
	wanted, ok := r.resolve(ctx, state.Host, is)
	if !ok {
		return false, false
	}
	h, err := r.backend.Hosts.Host(state.Host.ValueString())
	if err != nil {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	text, err := h.StoredXML(ctx, state.UUID.ValueString())
	if err != nil {
		return false, false
	}
	stored, err := domainxml.StoredType(text)
	return stored == wanted.Type, err == nil
}
