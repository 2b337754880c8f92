package provider

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// merged has the attributes of all; the last one counts.
func merged(all ...values) values {
	one := values{}
	for _, v := range all {
		maps.Copy(one, v)
	}
	return one
}

// plan plans a resource. Computed values are those that Terraform keeps of the state.
func plan(t *testing.T, hosts any, kind string, config, state, computed values) *tfprotov6.PlanResourceChangeResponse {
	t.Helper()
	server := NewServer(Release{Version: "test"})
	all := schemas(server)(t.Context())
	_, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{
		Config: dynamic(t, all.Provider.ValueType(), values{"hosts": hosts}),
	})
	if err != nil {
		t.Fatal(err)
	}
	shape := all.ResourceSchemas[kind].ValueType()
	resp, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: kind, PriorState: dynamic(t, shape, state), Config: dynamic(t, shape, config),
		ProposedNewState: dynamic(t, shape, merged(computed, config)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// Guests can't write to drives, which the configuration must not promise.
func TestProvider_WritableDrive(t *testing.T) {
	hosts := values{"a": values{"uri": "qemu+tcp://127.0.0.1:1/system"}}
	for device, refused := range map[string]bool{"cdrom": true, "floppy": true, "disk": false} {
		for _, readOnly := range []any{false, true, nil, tftypes.UnknownValue} {
			disks := values{"seed": values{"device": device, "read_only": readOnly, "volume": tftypes.UnknownValue}}
			resp := plan(t, hosts, "virtclaim_virtual_machine", values{"host": "a", "name": "x", "memory": "64Mi", "disks": disks}, nil, nil)
			var got string
			for _, d := range resp.Diagnostics {
				if isError(d) {
					got += d.Attribute.String() + ": " + d.Detail
				}
			}
			if want := refused && readOnly == false; want != strings.Contains(got, `AttributeName("read_only"): Disk seed is a `+device) || !want && got != "" {
				t.Errorf("%s, read_only = %v: %s", device, readOnly, got)
			}
		}
	}
}

// A provider without hosts is for looking at claims. What needs a host says that there is none.
func TestProvider_WithoutHosts(t *testing.T) {
	if texts := configure(t, nil, values{"host": "https://127.0.0.1:1", "token": "x"}); len(texts) > 0 {
		t.Errorf("refused: %v", texts)
	}
	source := values{"iscsi": values{"portal": "127.0.0.1", "iqn": "iqn.2026-01.io.example:a", "lun": 1}}
	for kind, config := range map[string]values{
		"virtclaim_virtual_machine": {"host": "a", "name": "x", "memory": "64Mi"},
		"virtclaim_disk":            {"host": "a", "name": "x", "size": "1Gi"},
		"virtclaim_kernel":          {"host": "a", "name": "x", "source": values{"host_path": "/boot/vmlinuz"}},
		"virtclaim_volume_binding":  {"hosts": []any{"a"}, "name": "x", "source": source},
	} {
		for _, hosts := range []any{nil, values{}} {
			resp := plan(t, hosts, kind, config, nil, nil)
			errs := slices.DeleteFunc(resp.Diagnostics, func(d *tfprotov6.Diagnostic) bool { return !isError(d) })
			if len(errs) != 1 || !strings.Contains(errs[0].Detail, `the provider has no hosts, so there is no host "a": add it to hosts`) {
				t.Errorf("%s: %v", kind, errs)
			}
		}
	}
}
