package provider

import (
	"net"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// values are attributes by name; an attribute that is not named is null.
type values map[string]any

// The host "known" has the address of a listener that closes each connection. While a part of the provider's configuration is unknown, no
// connection is opened: reads return the prior state, and plans succeed. Once all is known, a failed read removes nothing from state.
func TestProvider_UnknownConfigDialsNoHost(t *testing.T) {
	address, calls := listener(t)
	server := NewServer(Release{Version: "test"})
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		name   string
		config values
	}{
		{"virtclaim_virtual_machine", values{"host": "known", "name": "web", "memory": "64Mi"}},
		{"virtclaim_disk", values{"host": "known", "name": "root", "usage_type": "fast", "size": "1Gi"}},
		{"virtclaim_volume_binding", values{
			"name": "data", "hosts": []any{"known"}, "source": values{"iscsi": values{"portal": address, "iqn": "iqn.2026-01.io.example:a", "lun": 1}},
		}},
	} {
		kind := schemas.ResourceSchemas[r.name].ValueType()
		state := dynamic(t, kind, r.config)
		for name, other := range map[string]any{"known": "qemu+tcp://127.0.0.1:1/system", "unknown": tftypes.UnknownValue} {
			t.Run(r.name+" "+name, func(t *testing.T) {
				hosts := values{"known": values{"uri": "qemu+tcp://" + address + "/system"}, "other": values{"uri": other}}
				configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{
					Config: dynamic(t, schemas.Provider.ValueType(), values{"hosts": hosts}),
				})
				if err != nil || slices.ContainsFunc(configured.Diagnostics, isError) {
					t.Fatal(configured.Diagnostics, err)
				}
				calls.Store(0)
				read, err := server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: r.name, CurrentState: state})
				if err != nil {
					t.Fatal(err)
				}
				fails := slices.ContainsFunc(read.Diagnostics, isError)
				if fails != (name == "known") {
					t.Errorf("the read fails: %v, %v", fails, read.Diagnostics)
				}
				before, _ := state.Unmarshal(kind)
				after, err := read.NewState.Unmarshal(kind)
				if err != nil || after.IsNull() || name == "unknown" && !after.Equal(before) {
					t.Errorf("it was read as %s, %v", after, err)
				}
				if name == "known" {
					return
				}
				planned, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
					TypeName: r.name, PriorState: dynamic(t, kind, nil), Config: state, ProposedNewState: state,
				})
				if err != nil || len(planned.Diagnostics) > 0 || calls.Load() > 0 {
					t.Errorf("planned with %v, %v and %d calls", planned.Diagnostics, err, calls.Load())
				}
			})
		}
	}
}

// listener counts connections, and closes them.
func listener(t *testing.T) (address string, calls *atomic.Int32) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	calls = &atomic.Int32{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			_ = c.Close()
		}
	}()
	return l.Addr().String(), calls
}

func dynamic(t *testing.T, kind tftypes.Type, of values) *tfprotov6.DynamicValue {
	t.Helper()
	value := tftypes.NewValue(kind, nil)
	if of != nil {
		value = valueOf(kind, of)
	}
	d, err := tfprotov6.NewDynamicValue(kind, value)
	if err != nil {
		t.Fatal(err)
	}
	return &d
}

// valueOf converts a value of Go to one of Terraform.
func valueOf(kind tftypes.Type, of any) tftypes.Value {
	object, isObject := kind.(tftypes.Object)
	named, isMap := of.(values)
	switch list, isList := of.([]any); {
	case isObject && isMap:
		all := map[string]tftypes.Value{}
		for name, k := range object.AttributeTypes {
			all[name] = valueOf(k, named[name])
		}
		return tftypes.NewValue(kind, all)
	case isMap:
		all := map[string]tftypes.Value{}
		for name, v := range named {
			all[name] = valueOf(kind.(tftypes.Map).ElementType, v)
		}
		return tftypes.NewValue(kind, all)
	case isList:
		var all []tftypes.Value
		for _, v := range list {
			all = append(all, valueOf(elementOf(kind), v))
		}
		return tftypes.NewValue(kind, all)
	}
	return tftypes.NewValue(kind, of)
}

// elementOf is the type of a set's or list's elements.
func elementOf(kind tftypes.Type) tftypes.Type {
	if list, is := kind.(tftypes.List); is {
		return list.ElementType
	}
	return kind.(tftypes.Set).ElementType
}

func isError(d *tfprotov6.Diagnostic) bool { return d.Severity == tfprotov6.DiagnosticSeverityError }

// While the provider's configuration is unknown, a data source says what could not be read, and why.
func TestProvider_UnknownConfigReadsNoDataSource(t *testing.T) {
	for _, create := range New(Release{Version: "test"})().DataSources(t.Context()) {
		var resp datasource.ReadResponse
		create().Read(t.Context(), datasource.ReadRequest{}, &resp)
		if len(resp.Diagnostics) != 1 {
			t.Fatalf("%T: %v", create(), resp.Diagnostics)
		}
		is := resp.Diagnostics[0]
		if said := regexp.MustCompile(`so (the cluster can't|no host can) be asked yet`); is.Summary() == "" || !said.MatchString(is.Detail()) {
			t.Errorf("%T: %q, %q", create(), is.Summary(), is.Detail())
		}
	}
}
