package provider

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// values are attributes by name; of what is not named the value is null.
type values map[string]any

// While a part of the provider's configuration is unknown, nobody is dialled, not even the host that is known: reads give what was in
// state, and plans go.
func TestAnUnknownConfigurationDialsNothing(t *testing.T) {
	address, dials := listener(t)
	uri := "qemu+tcp://" + address + "/system"
	server := providerserver.NewProtocol6(New("test")())()
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	resources := map[string]values{
		"virtclaim_virtual_machine": {"host": "known", "name": "web", "memory": "64Mi"},
		"virtclaim_disk":            {"host": "known", "name": "root", "usage_type": "fast", "size": "1Gi"},
		"virtclaim_volume_binding": {
			"name": "data", "hosts": []any{"known"}, "source": values{"iscsi": values{"portal": address, "iqn": "iqn.2026-01.io.example:a", "lun": 1}},
		},
	}
	for _, c := range []struct {
		name  string
		other any
		dials bool
	}{
		{"known", "qemu+tcp://127.0.0.1:1/system", true},
		{"unknown", tftypes.UnknownValue, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dials.Store(0)
			hosts := values{"known": values{"uri": uri}, "other": values{"uri": c.other}}
			_, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{
				Config: dynamic(t, schemas.Provider.ValueType(), values{"hosts": hosts}),
			})
			if err != nil {
				t.Fatal(err)
			}
			for name, config := range resources {
				lookAt(t, server, name, schemas.ResourceSchemas[name].ValueType(), config, !c.dials)
			}
			if got := dials.Load() > 0; got != c.dials {
				t.Errorf("dialled: %v, want %v", got, c.dials)
			}
		})
	}
}

// listener counts who calls, and hangs up.
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

// lookAt reads a resource that is there and plans one that is not yet; strict expects both to go, and the read to change nothing.
func lookAt(t *testing.T, server tfprotov6.ProviderServer, name string, kind tftypes.Type, config values, strict bool) {
	t.Helper()
	is, none := dynamic(t, kind, config), dynamic(t, kind, nil)
	read, err := server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: name, CurrentState: is})
	if err != nil {
		t.Fatal(err)
	}
	planned, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: name, PriorState: none, Config: is, ProposedNewState: is,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strict {
		return
	}
	for _, d := range append(read.Diagnostics, planned.Diagnostics...) {
		t.Errorf("%s: %s: %s", name, d.Summary, d.Detail)
	}
	before, _ := is.Unmarshal(kind)
	if after, err := read.NewState.Unmarshal(kind); err != nil || !after.Equal(before) {
		t.Errorf("%s was read as %s, %v", name, after, err)
	}
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

// valueOf makes a value of Terraform's of one of Go's.
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
			all = append(all, valueOf(kind.(tftypes.Set).ElementType, v))
		}
		return tftypes.NewValue(kind, all)
	}
	return tftypes.NewValue(kind, of)
}
