package virtualmachine

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Another prefix is another machine, unless the name has it already: as of an imported one, or one that had its name before.
func TestModel_HasOtherPrefix(t *testing.T) {
	null, web, we, db := types.StringNull(), types.StringValue("web-"), types.StringValue("we"), types.StringValue("db-")
	for _, c := range []struct {
		was, is types.String
		name    string
		want    bool
	}{
		{web, web, "web-1", false},
		{web, db, "web-1", true},
		{web, we, "web-1", false},
		{null, web, "web-1", false},
		{null, db, "web-1", true},
		{web, null, "web-1", false},
		{web, types.StringUnknown(), "web-1", false},
		{web, web, "renamed", false},
	} {
		state := model{NamePrefix: c.was, Name: types.StringValue(c.name)}
		if got := (model{NamePrefix: c.is}).hasOtherPrefix(state); got != c.want {
			t.Errorf("%s, with %s after %s: %v", c.name, c.is, c.was, got)
		}
	}
}
