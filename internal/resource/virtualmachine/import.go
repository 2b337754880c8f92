package virtualmachine

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// ImportState takes <host>/<name> or <host>/<UUID> of any domain, also of one that was not created by virtclaim.
func (r *virtualMachine) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	parts, err := tfvalue.ImportID(req.ID, "<host>/<name>")
	if err != nil {
		resp.Diagnostics.AddError("Invalid import id", err.Error())
		return
	}
	if !r.Provider.Ready() {
		resp.Diagnostics.AddError("The machine could not be imported", "The provider's configuration is not known yet.")
		return
	}
	h, err := r.Provider.Hosts.Host(parts[0])
	if err != nil {
		resp.Diagnostics.AddError("Unknown host", err.Error())
		return
	}
	id := parts[1]
	if _, err = uuid.Parse(id); err == nil { // a name may look like one, too
		_, err = h.StoredXML(ctx, id)
	}
	if err != nil {
		id, err = h.LookupByName(ctx, parts[1])
	}
	if err != nil {
		resp.Diagnostics.AddError("The machine could not be imported", err.Error())
		return
	}
	name, ok := r.adopt(ctx, h, parts[0], id, &resp.Diagnostics)
	if !ok {
		return
	}
	for at, value := range map[string]string{"id": parts[0] + "/" + name, "host": parts[0], "name": name, "uuid": id} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(at), value)...)
	}
}

// adopt checks a domain that an import or a moved block takes over, and warns of devices without an attribute. It returns its name.
func (r *virtualMachine) adopt(ctx context.Context, h *host.Host, key, uuid string, diags *diag.Diagnostics) (name string, ok bool) {
	stored, err := r.manager(h, key).ReadStored(ctx, uuid)
	if err != nil {
		diags.AddError("The machine could not be imported", err.Error())
		return "", false
	}
	if err := checkImportedName(key, stored.Name()); err != nil {
		diags.AddError("The machine must be renamed before it is imported", err.Error())
		return "", false
	}
	warnUnsupported(ctx, diags, key+"/"+stored.Name(), stored)
	return stored.Name(), !diags.HasError()
}

// checkImportedName refuses the name of a domain that the attribute name can't have: the next plan would fail.
func checkImportedName(hostKey, name string) error {
	if domainName.MatchString(name) {
		return nil
	}
	renamed := cmp.Or(strings.Join(strings.Fields(name), "-"), "new-name")
	return fmt.Errorf("domain %q on host %s has white space in its name, which the attribute name can't have. Shut it down, rename it "+
		"there (virsh domrename %s %s), and import it by its new name: terraform import <address> %s", name, hostKey, host.ShellQuote(name),
		host.ShellQuote(renamed), host.ShellQuote(hostKey+"/"+renamed))
}

// warnUnsupported names what would be missing in a machine that is created with the attributes that the domain has.
func warnUnsupported(ctx context.Context, diags *diag.Diagnostics, id string, stored *domainxml.Domain) {
	names, err := notDescribed(ctx, stored)
	if err != nil {
		diags.AddError("The machine could not be imported", err.Error())
		return
	}
	if len(names) > 0 {
		diags.AddWarning("Not all of the machine can be described here",
			fmt.Sprintf("Domain %s has what virtclaim_virtual_machine has no attributes for: %s. It stays as it is in updates, "+
				"and whether it changes is not seen. A replacement of the machine loses it.", id, strings.Join(names, ", ")))
	}
}

func notDescribed(ctx context.Context, stored *domainxml.Domain) ([]string, error) {
	is, err := stored.Machine()
	if err != nil {
		return nil, err
	}
	var m model
	m.read(is, false)
	again := m.was(ctx)
	again.DefaultVideo = is.DefaultVideo
	return stored.Unsupported(again)
}

// isImport reports whether the model is filled for the first time, by an import: otherwise force_stop has a value.
func (m model) isImport() bool { return m.ForceStop.IsNull() }
