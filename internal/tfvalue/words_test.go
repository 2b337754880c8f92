package tfvalue

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestWords(t *testing.T) {
	w := Words{Accepted: []string{"read-shared", "write-shared"}, Instead: map[string]string{"read-only": "Write read-shared."}}
	for value, want := range map[types.String]string{
		types.StringNull():               "",
		types.StringUnknown():            "",
		types.StringValue("read-shared"): "",
		types.StringValue("read-only"):   `"read-only" must be one of: read-shared, write-shared. Write read-shared.`,
		types.StringValue("Read-only"):   `"Read-only" must be one of: read-shared, write-shared. Write read-shared.`,
		types.StringValue("Read-shared"): `"Read-shared" must be one of: read-shared, write-shared. Write read-shared.`,
		types.StringValue("a\x1b[2J"):    `"a\x1b[2J" must be one of: read-shared, write-shared.`,
	} {
		var resp validator.StringResponse
		w.ValidateString(t.Context(), validator.StringRequest{ConfigValue: value}, &resp)
		if want == "" && resp.Diagnostics.HasError() || want != "" && (len(resp.Diagnostics) != 1 || resp.Diagnostics[0].Detail() != want) {
			t.Errorf("%s: %v, want %s", value, resp.Diagnostics, want)
		}
	}
}
