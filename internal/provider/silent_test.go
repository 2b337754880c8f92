package provider

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// The plan of what is new says that its host does not answer, and dials once for all that it needs of it.
func TestProvider_PlanWarnsOfSilentHost(t *testing.T) {
	address, calls := listener(t)
	server := NewServer(Release{Version: "test"})
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	silent := values{"uri": "qemu+tcp://" + address + "/system", "storage": values{"fast": "ssd"}}
	configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{
		Config: dynamic(t, schemas.Provider.ValueType(), values{"hosts": values{"silent": silent}}),
	})
	if err != nil || slices.ContainsFunc(configured.Diagnostics, isError) {
		t.Fatal(configured.Diagnostics, err)
	}
	disk := values{"host": "silent", "name": "root", "usage_type": "fast", "size": "1Gi"}
	kernel := values{"host": "silent", "name": "linux", "usage_type": "fast", "source": values{"host_path": "/boot/vmlinuz"}}
	for _, r := range []struct {
		name   string
		config values
	}{{"virtclaim_disk", disk}, {"virtclaim_disk", disk}, {"virtclaim_kernel", kernel}, {"virtclaim_virtual_machine", values{"host": "silent", "name": "web", "memory": "64Mi"}}} {
		kind := schemas.ResourceSchemas[r.name].ValueType()
		config := dynamic(t, kind, r.config)
		planned, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
			TypeName: r.name, PriorState: dynamic(t, kind, nil), Config: config, ProposedNewState: config,
		})
		if err != nil || len(planned.Diagnostics) != 1 || isError(planned.Diagnostics[0]) || planned.Diagnostics[0].Summary != "Host silent does not answer" {
			t.Errorf("%s: %v, %v", r.name, planned.Diagnostics, err)
		}
	}
	if calls.Load() > 2 { // a machine's capabilities are asked for, too
		t.Errorf("the host was dialled %d times", calls.Load())
	}
}
