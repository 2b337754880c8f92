//go:build acc

package function_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// volumeOf is a volume in a configuration, whose image has that uri, as an expression.
func volumeOf(uri string) string {
	return `{ capacity = 1073741824, copy_on_read = false, images = [{
    uri = ` + uri + `, servers = null, auth = null, options = null, format = "raw"
    access_mode = "read-shared", hosts = ["node-a"], binding = null, instance_id = null
  }] }`
}

// Terraform calls each function, of a provider that is not configured, and says which argument is wrong.
func TestAccFunction_CalledByConfigurations(t *testing.T) {
	var config string
	var checks []statecheck.StateCheck
	for call, want := range map[string]knownvalue.Check{
		`quantity_to_bytes("10Gi")`:                                                    knownvalue.Int64Exact(10737418240),
		`quantity_to_bytes("9223372036854775807") - 9223372036854775806`:               knownvalue.Int64Exact(1),
		`bytes_to_quantity(10737418240)`:                                               knownvalue.StringExact("10Gi"),
		`bytes_to_quantity(provider::virtclaim::quantity_to_bytes("1.5Gi") * 2)`:       knownvalue.StringExact("3Gi"),
		`disk_xml(` + volumeOf(`terraform_data.uri.output`) + `)`:                      isElement,
		`disk_xml(jsondecode(jsonencode(` + volumeOf(`"nbds://nbd.example/a"`) + `)))`: isElement,
	} {
		name := fmt.Sprintf("value_%d", len(checks))
		config += fmt.Sprintf("output %q {\n  value = provider::virtclaim::%s\n}\n", name, call)
		checks = append(checks, statecheck.ExpectKnownOutputValue(name, want))
	}
	// Known after the apply only, as the secret of a binding may be.
	config += `resource "terraform_data" "uri" { input = "nbds://nbd.example/a" }`
	refused := func(call, want string) resource.TestStep {
		return resource.TestStep{
			Config: "output \"it\" {\n  value = provider::virtclaim::" + call + "\n}\n", ExpectError: regexp.MustCompile(want), PlanOnly: true,
		}
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			refused(`quantity_to_bytes("10GB")`, `(?s)Invalid value for "quantity" parameter: "10GB" is not a\s+Kubernetes\s+quantity`),
			refused(`bytes_to_quantity(0.5)`, `(?s)Invalid value for "bytes" parameter: 0.5 is not a whole\s+number`),
			refused(`disk_xml(`+volumeOf(`"/srv/share/"`)+`)`, `(?s)Invalid value for "volume" parameter: "/srv/share/" is a folder`),
			{Config: config, ConfigStateChecks: checks},
		},
	})
}

var isElement = knownvalue.StringRegexp(regexp.MustCompile(`(?s)^<disk type="network" device="disk">.*tls="yes">.*<readonly>.*<shareable>`))
