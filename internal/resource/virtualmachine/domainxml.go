package virtualmachine

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var domainXMLGroup = attributeGroup{attributes: domainXMLAttributes, intent: domainXMLIntent, read: readDomainXML, check: checkDomainXML}

func domainXMLAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"domain_xml": schema.StringAttribute{
		Optional: true,
		MarkdownDescription: "What has no attribute here, as elements of libvirt's `<domain>` outside `<devices>`: `<features>`, " +
			"`<cpu>` (`cache`, `numa`, `maxphysaddr`), `<cputune>`, `<numatune>`, `<memtune>`, " +
			"`<memoryBacking>`, `<blkiotune>`, `<sysinfo>` with entries by value, `<os>` (`bootmenu`, `bios`, " +
			"`smbios`), `<pm>`, `<perf>`, `<genid>`, `<keywrap>`, `<launchSecurity>` of AMD SEV, and " +
			"`<metadata>` of other tools. What an attribute has is refused with its name, and so is all that " +
			"could open a file or a socket of the host or run a program. Changing it replaces the elements of " +
			"the previous text, and no others; changes take effect at the next start. The text is in the state: " +
			"give no secrets here.",
		PlanModifiers: []planmodifier.String{sameXML{domainxml.CanonicalXML}},
	}}
}

// sameXML keeps the text of the state if the configured one has the same canonical form, such as with other spaces.
type sameXML struct{ canonical func(string) string }

func (sameXML) Description(context.Context) string { return "Keeps a text that means the same." }

func (s sameXML) MarkdownDescription(ctx context.Context) string { return s.Description(ctx) }

func (s sameXML) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	was, is := req.StateValue, req.PlanValue
	if isSet(was) && isSet(is) && s.canonical(was.ValueString()) == s.canonical(is.ValueString()) {
		resp.PlanValue = was
	}
}

func domainXMLIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	want.DomainXML = m.DomainXML.ValueString()
}

func readDomainXML(m *model, is domainxml.Machine) { m.DomainXML = tfvalue.OrNull(is.DomainXML) }

func checkDomainXML(_ context.Context, m model, diags *diag.Diagnostics) {
	if m.DomainXML.IsNull() || m.DomainXML.IsUnknown() {
		return
	}
	text := m.DomainXML.ValueString()
	if err := domainxml.CheckDomain(text); err != nil {
		diags.AddAttributeError(path.Root("domain_xml"), "Elements that can't be set", "Of domain_xml: "+err.Error()+".")
		return
	}
	most, err := m.Memory.KiB()
	if !m.MaxMemory.IsNull() {
		most, err = m.MaxMemory.KiB()
	}
	known := !m.Memory.IsUnknown() && !m.MaxMemory.IsUnknown() && err == nil
	if sum := domainxml.NUMAMemory(text); known && sum != 0 && (most>>10 != sum>>10) {
		diags.AddAttributeError(path.Root("domain_xml"), "NUMA cells of another size",
			fmt.Sprintf("The cells in domain_xml have %d KiB, and the machine has %d (max_memory, or else memory). libvirt would take the "+
				"sum of the cells. Make both the same.", sum, most))
	}
	if tfvalue.Fields[featuresModel](m.Features).HyperV.ValueBool() && domainxml.SetsHyperV(text) {
		diags.AddAttributeError(path.Root("domain_xml"), "Two sets of enlightenments",
			"Both domain_xml and features.hyperv set <hyperv>. Leave one of them out.")
	}
}
