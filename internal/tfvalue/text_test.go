package tfvalue

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Each validator refuses invalid texts at its attribute, and accepts unknown and absent ones.
func TestText_Validators(t *testing.T) {
	for _, row := range []struct {
		name          string
		rule          validator.String
		taken, refuse []string
	}{
		{"path", AbsolutePath(), []string{"/", "/a/..b", "/a b"}, []string{"", "a", "../a", "/a/../b", "/.."}},
		{"XML", XMLText(), []string{"two\n\tlines", "ünïcödé 🖥 \u200f"}, []string{"\x00", "\x1b", "\r", "\x7f", "\u009b", "\uffff", "\ufffd"}},
		{"device", NoDevice(), []string{"/var/log/a", "/dev/null", "/devices/a", "/procs"}, []string{
			"/dev", "/dev/sdb", "//dev/sdb", "/dev/mapper/a", "/proc/self/root/dev/sdb", "/./proc/1/fd/3", "/sys/a", "/run/libvirt/a", "/var/run/libvirt/a",
		}},
	} {
		check := func(v types.String) bool {
			var answer validator.StringResponse
			row.rule.ValidateString(t.Context(), validator.StringRequest{Path: path.Root("x"), ConfigValue: v}, &answer)
			return !answer.Diagnostics.HasError()
		}
		for _, s := range row.taken {
			if !check(types.StringValue(s)) {
				t.Errorf("%s: %q is refused", row.name, s)
			}
		}
		for _, s := range row.refuse {
			if check(types.StringValue(s)) {
				t.Errorf("%s: %q is taken", row.name, s)
			}
		}
		if !check(types.StringNull()) || !check(types.StringUnknown()) {
			t.Errorf("%s: what is not there is refused", row.name)
		}
	}
}
