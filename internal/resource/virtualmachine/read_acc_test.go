//go:build acc

package virtualmachine_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/provider"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// maxReadAllocation is the limit in bytes of what one read of a machine allocates: planning a thousand machines reads each of them. Nine
// tenths are the framework's, which walks the schema for each attribute; XML must not exceed that.
const maxReadAllocation = 4_000_000

// benchmarkDisks is the number of disks of the measured machine.
const benchmarkDisks = 1

func TestAccVirtualMachine_ReadAllocations(t *testing.T) {
	read := reader(t, acctest.Lab(t))
	result := testing.Benchmark(func(b *testing.B) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			read(b)
		}
	})
	if got := result.AllocedBytesPerOp(); got == 0 || got > maxReadAllocation {
		t.Errorf("reading a machine allocates %d bytes, which is not between 1 and %d", got, maxReadAllocation)
	}
}

// BenchmarkReadMachine measures one read of a machine: Terraform's protocol, libvirt's answer, the XML, the state. cpu-ms/op is the
// processor time of this process.
func BenchmarkReadMachine(b *testing.B) {
	read := reader(b, acctest.Lab(b))
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		read(b)
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(time.Millisecond)/float64(b.N), "cpu-ms/op")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// reader defines a machine and imports it into its own provider; the function that it returns reads that machine once.
func reader(t testing.TB, l *lab.Lab) func(testing.TB) {
	t.Helper()
	defineMachine(t, l)
	server := provider.NewServer(provider.Release{Version: "test"})
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	must(t, err, schemas.Diagnostics)
	configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{
		Config: providerConfig(t, schemas.Provider.ValueType(), l.Hosts["host-a"].URI),
	})
	must(t, err, configured.Diagnostics)
	imported, err := server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
		TypeName: "virtclaim_virtual_machine", ID: "host-a/measured",
	})
	must(t, err, imported.Diagnostics)
	state := imported.ImportedResources[0].State
	return func(t testing.TB) {
		t.Helper()
		answer, err := server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
			TypeName: "virtclaim_virtual_machine", CurrentState: state,
		})
		must(t, err, answer.Diagnostics)
		state = answer.NewState
	}
}

func must(t testing.TB, err error, diagnostics []*tfprotov6.Diagnostic) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range diagnostics {
		t.Fatal(d.Summary, d.Detail)
	}
}

func defineMachine(t testing.TB, l *lab.Lab) {
	t.Helper()
	m := domainxml.Machine{
		Name: "measured", VCPUs: 2, Memory: 1 << 20, Type: "q35", DomainType: "qemu", Serial: &domainxml.Serial{},
		Disks: map[string]domainxml.Disk{}, Metadata: domainxml.Metadata{Owner: "measured", Phase: domainxml.Ready},
	}
	port := int64(3260)
	for n := range benchmarkDisks {
		m.Disks[fmt.Sprintf("disk-%d", n)] = domainxml.Disk{Device: domainxml.Fixed, Bus: "virtio", Volume: volume.Volume{Images: []volume.Image{{
			Type: "network", Format: "raw", Protocol: "iscsi", Name: fmt.Sprintf("iqn.2026-01.io.example:disks/%d", n),
			Servers: []volume.Server{{Host: "storage.example", Port: &port}}, AccessMode: volume.WriteExclusive, Hosts: []string{"host-a"},
		}}}}
	}
	xml, err := domainxml.Build(m)
	if err != nil {
		t.Fatal(err)
	}
	a := l.Hosts["host-a"]
	if err := a.DefineXML(t.Context(), xml); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := a.Virsh(context.WithoutCancel(t.Context()), "undefine", "measured"); err != nil {
			t.Error(err)
		}
	})
}

// providerConfig has one host and is null otherwise.
func providerConfig(t testing.TB, kind tftypes.Type, uri string) *tfprotov6.DynamicValue {
	t.Helper()
	object := kind.(tftypes.Object)
	hosts := object.AttributeTypes["hosts"].(tftypes.Map)
	host := hosts.ElementType.(tftypes.Object)
	values, address := nulls(object), nulls(host)
	address["uri"] = tftypes.NewValue(tftypes.String, uri)
	values["hosts"] = tftypes.NewValue(hosts, map[string]tftypes.Value{"host-a": tftypes.NewValue(host, address)})
	config, err := tfprotov6.NewDynamicValue(object, tftypes.NewValue(object, values))
	if err != nil {
		t.Fatal(err)
	}
	return &config
}

// nulls are the attributes of an object, all of them null.
func nulls(object tftypes.Object) map[string]tftypes.Value {
	values := map[string]tftypes.Value{}
	for name, kind := range object.AttributeTypes {
		values[name] = tftypes.NewValue(kind, nil)
	}
	return values
}
