package virtualmachine

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var fwCfgGroup = attributeGroup{attributes: fwCfgAttributes, intent: fwCfgIntent, read: readFWCfg, check: checkFWCfg}

var (
	// entryName is a name as libvirt and QEMU take it (docs/specs/fw_cfg in QEMU).
	entryName = stringvalidator.RegexMatches(regexp.MustCompile(`^opt/[A-Za-z0-9][A-Za-z0-9._/-]{0,50}$`),
		"must begin with opt/, and have letters, digits and . _ - / only, at most 55 in all")
	// cleanPath has no comma, because libvirt passes it on, and QEMU begins another option there, and no slashes that libvirt leaves out.
	cleanPath = stringvalidator.RegexMatches(regexp.MustCompile(`^(/[^/,]+)+$`), "must have no comma, no // and no / at its end")
	// reserved begin names that libvirt refuses, or virtclaim gives to guests itself.
	reserved = []string{"opt/ovmf/", "opt/org.qemu/", "opt/io.virtclaim/"}
)

func fwCfgAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"fw_cfg": schema.MapAttribute{
		Optional: true, ElementType: types.StringType,
		MarkdownDescription: "Files of the host that the guest finds in QEMU's fw_cfg device: their paths, by the names of the entries. " +
			"The path of a `virtclaim_disk` is `volume.images[0].uri`. Ignition reads `opt/com.coreos/config` (Fedora CoreOS) or " +
			"`opt/org.flatcar-linux/config` (Flatcar), from a disk with `source.ignition`. The host opens a file when the machine " +
			"starts, so changes take effect at the next start, and a disk can't be removed while a machine names it, or was " +
			"started with it.",
		Validators: []validator.Map{
			mapvalidator.SizeAtLeast(1), mapvalidator.NoNullValues(),
			mapvalidator.KeysAre(entryName),
			mapvalidator.ValueStringsAre(tfvalue.AbsolutePath(), cleanPath),
		},
	}}
}

func checkFWCfg(_ context.Context, m model, diags *diag.Diagnostics) {
	values := domainxml.FWCfgValues(m.DomainXML.ValueString())
	for name := range m.FWCfg.Elements() {
		at := path.Root("fw_cfg").AtMapKey(name)
		if slices.ContainsFunc(reserved, func(begin string) bool { return strings.HasPrefix(name, begin) }) {
			diags.AddAttributeError(at, "Reserved name",
				fmt.Sprintf("Names that begin with one of %s are not for users. Choose another one.", strings.Join(reserved, ", ")))
		}
		if slices.Contains(values, name) {
			diags.AddAttributeError(at, "Two entries of one name",
				fmt.Sprintf("domain_xml has an entry %s, too, with which QEMU does not start. Leave one of them out.", name))
		}
	}
}

func fwCfgIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	want.FWCfg = texts(m.FWCfg)
}

func readFWCfg(m *model, is domainxml.Machine) {
	files := map[string]attr.Value{}
	for name, file := range is.FWCfg {
		files[name] = types.StringValue(file)
	}
	m.FWCfg = textsOrNull(files)
}
