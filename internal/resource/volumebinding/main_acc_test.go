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

// expectErrors plans a folder's configuration: each of these resources, by name, has an error that matches, and no other has one.
func expectErrors(t *testing.T, cli acctest.CLI, want map[string]*regexp.Regexp) {
	t.Helper()
	out, err := cli.Run("plan", "-no-color")
	if err == nil {
		t.Errorf("the plan succeeded:\n%s", out)
	}
	found := map[string]string{}
	for _, text := range strings.Split(out, "Error: ")[1:] {
		at := inResource.FindStringSubmatch(text)
		if at == nil || want[at[1]] == nil {
			t.Errorf("an error is at no resource that should have one: %s", text)
			continue
		}
		found[at[1]] += text
	}
	for resource, why := range want {
		if !why.MatchString(found[resource]) {
			t.Errorf("%s: want %s, got: %s", resource, why, found[resource])
		}
	}
}

var inResource = regexp.MustCompile(`in resource "\w+" "([\w-]+)"`)
