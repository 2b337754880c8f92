package virtualmachine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// deviceHost is what a host is asked about its devices.
type deviceHost interface {
	NodeDevices(ctx context.Context) ([]host.NodeDevice, error)
	Domains(ctx context.Context) ([]host.Domain, error)
}

// checkHostDevices refuses devices of the host that it lacks, or that another running domain has. What the host does not answer is left to
// libvirt, at the start.
func (r *virtualMachine) checkHostDevices(ctx context.Context, plan, state model, diags *diag.Diagnostics) (ok bool) {
	named := plan.newHostDevices(state)
	h, err := r.Provider.Hosts.Host(plan.Host.ValueString())
	if len(named) == 0 || err != nil || h.Unresponsive() || diags.HasError() {
		return !diags.HasError()
	}
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	isSelf := func(d host.Domain) bool { // also as an interrupted creation has left it
		return d.UUID == state.UUID.ValueString() || d.Name == plan.Name.ValueString()
	}
	if err := refuseHostDevices(ctx, h, h.Key, named, isSelf, diags); err != nil {
		tflog.Warn(ctx, "Which devices the host has is not known", map[string]any{"host": h.Key, "error": err.Error()})
	}
	return !diags.HasError()
}

// newHostDevices are the devices of the host that a machine names which is to run, but those that it runs with already.
func (m model) newHostDevices(state model) (all []domainxml.HostDevice) {
	if isSet(m.Running) && !m.Running.ValueBool() {
		return nil
	}
	all, _ = domainxml.HostDevicesIn(m.DevicesXML.ValueString()) // what can't be read is refused already
	var has []domainxml.HostDevice
	if state.Running.ValueBool() && m.Host.Equal(state.Host) {
		has, _ = domainxml.HostDevicesIn(state.DevicesXML.ValueString())
	}
	return slices.DeleteFunc(all, func(d domainxml.HostDevice) bool { return d.Optional || slices.Contains(has, d) })
}

func refuseHostDevices(ctx context.Context, h deviceHost, key string, named []domainxml.HostDevice, isSelf func(host.Domain) bool,
	diags *diag.Diagnostics,
) error {
	at := path.Root("devices_xml")
	there, err := h.NodeDevices(ctx)
	isUnknown := errors.Is(err, host.ErrNoNodeDevices)
	if err != nil && !isUnknown {
		return err
	}
	domains, err := h.Domains(ctx)
	if err != nil {
		return err
	}
	for _, d := range named {
		candidates := []domainxml.HostDevice{d}
		if !isUnknown {
			candidates = candidates[:0]
		}
		for _, t := range there {
			if is := (domainxml.HostDevice{Kind: t.Kind, Address: t.Address, Model: t.Model()}); d.Is(is) {
				candidates = append(candidates, is)
			}
		}
		by := ""
		for _, c := range candidates {
			if by = userOf(c, domains, isSelf); by == "" {
				break
			}
		}
		switch {
		case len(candidates) == 0:
			diags.AddAttributeError(at, "The host lacks a device",
				fmt.Sprintf("Host %s has no %s. %s The data source virtclaim_host lists its devices.", key, d, similar(d, there)))
		case by != "":
			diags.AddAttributeError(at, "A device of the host is in use", fmt.Sprintf("Domain %s, which runs on host %s, has %s. Stop it, "+
				"or take the device out there and restart it, in an apply before this one.", by, key, d))
		}
	}
	return nil
}

// userOf returns the name of the running domain that has a device, but of this machine; empty if none has.
func userOf(device domainxml.HostDevice, domains []host.Domain, isSelf func(host.Domain) bool) string {
	for _, d := range domains {
		if d.Live != "" && strings.Contains(d.Live, "hostdev") && !isSelf(d) {
			if has, _ := domainxml.HostDevicesOf(d.Live); slices.ContainsFunc(has, device.Is) {
				return d.Name
			}
		}
	}
	return ""
}

// similar are the devices of the host of that kind, those first that begin like the one that it lacks. A bridge can't be passed through.
func similar(lacks domainxml.HostDevice, there []host.NodeDevice) string {
	alike := map[string]int{}
	for _, d := range there {
		name, other, text, n := lacks.Address, d.Address, d.Address, 0
		if name == "" {
			name, other = lacks.Model, d.Model()
		}
		for n < min(len(name), len(other)) && name[n] == other[n] {
			n++
		}
		if d.Vendor != "" {
			text += " (" + d.Model() + ")"
		}
		if d.Kind == lacks.Kind && !strings.HasPrefix(d.Class, "06") {
			alike[text] = n
		}
	}
	if len(alike) == 0 {
		return "It has none of that kind."
	}
	texts := slices.SortedFunc(maps.Keys(alike), func(a, b string) int { return cmp.Or(alike[b]-alike[a], strings.Compare(a, b)) })
	return "It has " + firstOf(strings.Join(texts, ", ")) + "."
}
