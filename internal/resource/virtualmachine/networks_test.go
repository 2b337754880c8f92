package virtualmachine

import (
	"maps"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// A host is asked only for the networks of interfaces that are new or move: an unchanged plan costs nothing.
func TestInterfaces_OtherNetworks(t *testing.T) {
	on := func(host string, m model) model {
		m.Host = types.StringValue(host)
		return m
	}
	red := map[string]attr.Value{"network": types.StringValue("red")}
	bridge := map[string]attr.Value{"network": types.StringNull(), "bridge": types.StringValue("br0")}
	unknown := map[string]attr.Value{"network": types.StringUnknown()}
	for name, c := range map[string]struct {
		plan, state model
		want        []string
	}{
		"new machine":     {on("a", with(red)), model{}, []string{"default", "red"}},
		"unchanged":       {on("a", with(red)), on("a", with(red)), nil},
		"other network":   {on("a", with(red)), on("a", with(nil)), []string{"red"}},
		"from a bridge":   {on("a", with(red)), on("a", with(bridge)), []string{"red"}},
		"to a bridge":     {on("a", with(bridge)), on("a", with(nil)), nil},
		"not known":       {on("a", with(unknown)), on("a", with(nil)), nil},
		"to another host": {on("b", with(red)), on("a", with(red)), []string{"default", "red"}},
		"new interfaces":  {on("a", with(red)), on("a", model{}), []string{"default", "red"}},
	} {
		if got := slices.Sorted(maps.Values(c.plan.otherNetworks(c.state))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
