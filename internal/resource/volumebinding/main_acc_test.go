//go:build acc

package volumebinding_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func TestMain(m *testing.M) { acctest.Main(m) }

const data = "virtclaim_volume_binding.data"

// binding is a binding's configuration in HCL.
func binding(source, more string, hosts ...string) string {
	return fmt.Sprintf(`
resource "virtclaim_volume_binding" "data" {
  name   = "data"
  hosts  = ["%s"]
  source = { %s }
  %s
}
`, strings.Join(hosts, `", "`), source, more)
}

func fromClaim(namespace, name string) string {
	return fmt.Sprintf("persistent_volume_claim = { namespace = %q, claim_name = %q }", namespace, name)
}

// planned expects one action for the binding.
func planned(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(data, action)}}
}

// message builds a regular expression of words that Terraform may have wrapped.
func message(parts ...string) *regexp.Regexp {
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(regexp.QuoteMeta(p), " ", `[\s│]+`)
	}
	return regexp.MustCompile(`(?s)` + strings.Join(parts, ".*"))
}
