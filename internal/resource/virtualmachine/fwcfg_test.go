package virtualmachine

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestCheckFWCfg_Refuses(t *testing.T) {
	entry := func(name string, file types.String) map[string]attr.Value { return map[string]attr.Value{name: file} }
	file := types.StringValue("/pool/web.ign")
	for name, c := range map[string]struct {
		given map[string]attr.Value
		xml   string
		says  string
	}{
		"a file":                    {given: entry("opt/com.coreos/config", file)},
		"an unknown file":           {given: entry("opt/a", types.StringUnknown())},
		"another value beside it":   {given: entry("opt/a", file), xml: "<sysinfo type='fwcfg'><entry name='opt/b'>x</entry></sysinfo>"},
		"no entry":                  {given: map[string]attr.Value{}, says: "at least 1"},
		"null":                      {given: entry("opt/a", types.StringNull()), says: "null"},
		"a name of QEMU's":          {given: entry("etc/boot", file), says: "must begin with opt/"},
		"a comma in the name":       {given: entry("opt/a,file=/b", file), says: "must begin with opt/"},
		"a name of firmware":        {given: entry("opt/ovmf/X", file), says: "not for users"},
		"a name of virtclaim":       {given: entry("opt/io.virtclaim/run", file), says: "not for users"},
		"a relative path":           {given: entry("opt/a", types.StringValue("web.ign")), says: "absolute path"},
		"a comma in the path":       {given: entry("opt/a", types.StringValue("/a,file=/etc/shadow")), says: "no comma"},
		"two slashes":               {given: entry("opt/a", types.StringValue("/pool//a")), says: "no //"},
		"a slash at the end":        {given: entry("opt/a", types.StringValue("/pool/")), says: "no / at its end"},
		"a value of the same name":  {given: entry("opt/a", file), xml: "<sysinfo type='fwcfg'><entry name='opt/a'>x</entry></sysinfo>", says: "Leave one of them out"},
		"a name that is far longer": {given: entry("opt/"+strings.Repeat("a", 52), file), says: "at most 55"},
	} {
		t.Run(name, func(t *testing.T) {
			value := types.MapValueMust(types.StringType, c.given)
			var diags diag.Diagnostics
			for _, v := range fwCfgAttributes()["fw_cfg"].(schema.MapAttribute).Validators {
				var resp validator.MapResponse
				v.ValidateMap(t.Context(), validator.MapRequest{Path: path.Root("fw_cfg"), ConfigValue: value}, &resp)
				diags.Append(resp.Diagnostics...)
			}
			checkFWCfg(t.Context(), model{FWCfg: value, DomainXML: types.StringValue(c.xml)}, &diags)
			var said []string
			for _, d := range diags {
				said = append(said, d.Detail())
			}
			if all := strings.Join(said, "\n"); (c.says == "") != (all == "") || !strings.Contains(all, c.says) {
				t.Errorf("it says %q, not %q", all, c.says)
			}
		})
	}
}
