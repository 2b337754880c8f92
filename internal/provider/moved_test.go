package provider

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// formerState is a state that dmacvicar/libvirt 0.8.3 wrote, with other paths.
const formerState = "../resource/virtualmachine/testdata/libvirt-0.8.3/terraform.tfstate"

// former are the resources of that state, by type and name, as Terraform hands them to a provider.
func former(t *testing.T) map[string]*tfprotov6.MoveResourceStateRequest {
	t.Helper()
	text, err := os.ReadFile(formerState)
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		Resources []struct {
			Type, Name string
			Instances  []struct {
				Attributes json.RawMessage
				Private    []byte
			}
		}
	}
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	all := map[string]*tfprotov6.MoveResourceStateRequest{}
	for _, r := range state.Resources {
		all[r.Type+"."+r.Name] = &tfprotov6.MoveResourceStateRequest{
			SourceProviderAddress: "registry.terraform.io/dmacvicar/libvirt", SourceTypeName: r.Type,
			SourceState: &tfprotov6.RawState{JSON: r.Instances[0].Attributes}, SourcePrivate: r.Instances[0].Private,
			TargetTypeName: map[bool]string{true: "virtclaim_virtual_machine", false: "virtclaim_disk"}[r.Type == "libvirt_domain"],
		}
	}
	return all
}

// moved are the attributes that a provider which is not configured gives the resource, and the errors.
func moved(t *testing.T, req *tfprotov6.MoveResourceStateRequest) (attributes map[string]string, refused string) {
	t.Helper()
	server := NewServer(Release{Version: "test"})
	resp, err := server.MoveResourceState(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range resp.Diagnostics {
		refused += d.Summary + ": " + d.Detail
	}
	if resp.TargetState == nil {
		return nil, refused
	}
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	state, err := resp.TargetState.Unmarshal(schemas.ResourceSchemas[req.TargetTypeName].ValueType())
	if err != nil {
		t.Fatal(err)
	}
	attributes = map[string]string{}
	var fields map[string]tftypes.Value
	if err := state.As(&fields); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		var text string
		if !value.IsNull() && value.As(&text) == nil {
			attributes[name] = text
		}
	}
	return attributes, refused
}

func TestProvider_MovesLibvirt08(t *testing.T) {
	all := former(t)
	for name, want := range map[string]map[string]string{
		"libvirt_domain.web":          {"name": "web", "uuid": "4f81ea58-7c30-470a-91bc-41ce46cf7cea"},
		"libvirt_domain.efi":          {"name": "efi", "uuid": "e89e2b60-6c6a-41b5-a7ea-17f42be880cf"},
		"libvirt_volume.base":         {"name": "base.qcow2", "pool": "ssd", "id": "/var/lib/libvirt/images/base.qcow2"},
		"libvirt_volume.web":          {"name": "web.qcow2", "pool": "ssd", "id": "/var/lib/libvirt/images/web.qcow2"},
		"libvirt_volume.data":         {"name": "data.raw", "pool": "ssd", "id": "/var/lib/libvirt/images/data.raw"},
		"libvirt_cloudinit_disk.seed": {"name": "seed.iso", "pool": "ssd", "id": "/var/lib/libvirt/images/seed.iso"},
	} {
		if got, refused := moved(t, all[name]); refused != "" || !maps.Equal(got, want) {
			t.Errorf("%s: got %v, %s, want %v", name, got, refused, want)
		}
		delete(all, name)
	}
	if len(all) > 0 {
		t.Errorf("not moved: %v", slices.Collect(maps.Keys(all)))
	}
}

// The states are written by the schema of dmacvicar/libvirt 0.9, by hand: the id of a domain is a number there, or missing.
func TestProvider_MovesLibvirt09(t *testing.T) {
	machine := map[string]string{"name": "web", "uuid": "4f81ea58-7c30-470a-91bc-41ce46cf7cea"}
	for _, c := range []struct {
		of, state string
		want      map[string]string
	}{
		{"libvirt_domain.web", `{"id": 3, "name": "web", "uuid": "4f81ea58-7c30-470a-91bc-41ce46cf7cea", "devices": {}}`, machine},
		{"libvirt_domain.web", `{"id": null, "name": "web", "uuid": "4f81ea58-7c30-470a-91bc-41ce46cf7cea"}`, machine},
		{
			"libvirt_volume.web", `{"id": "/p/a", "key": "/p/a", "name": "a", "pool": "default", "backing_store": {"path": "/p/b"}}`,
			map[string]string{"name": "a", "pool": "default", "id": "/p/a"},
		},
	} {
		req := former(t)[c.of]
		req.SourceState.JSON, req.SourcePrivate = []byte(c.state), nil
		if got, refused := moved(t, req); refused != "" || !maps.Equal(got, c.want) {
			t.Errorf("%s: got %v, %s, want %v", c.state, got, refused, c.want)
		}
	}
}

func TestProvider_MovesFromAddress(t *testing.T) {
	for address, want := range map[string]bool{
		"registry.terraform.io/dmacvicar/libvirt": true, "registry.opentofu.org/dmacvicar/libvirt": true,
		"mirror.example.org/dmacvicar/libvirt": true, "dmacvicar/libvirt": true,
		"registry.terraform.io/notdmacvicar/libvirt": false, "registry.terraform.io/other/libvirt": false,
		"registry.terraform.io/dmacvicar/libvirt2": false,
	} {
		req := former(t)["libvirt_domain.web"]
		req.SourceProviderAddress = address
		if got, refused := moved(t, req); (got != nil) != want || (refused == "") != want {
			t.Errorf("%s: got %v, %s", address, got, refused)
		}
	}
}

func TestProvider_RefusesMoves(t *testing.T) {
	for name, c := range map[string]struct {
		of     string
		change func(*tfprotov6.MoveResourceStateRequest)
		want   string
	}{
		"a later schema": {
			"libvirt_volume.web", func(r *tfprotov6.MoveResourceStateRequest) { r.SourceSchemaVersion = 1 }, "its schema has version 1",
		},
		"no UUID": {
			"libvirt_domain.web", func(r *tfprotov6.MoveResourceStateRequest) { r.SourceState.JSON = []byte(`{"id": 3, "name": "web"}`) },
			"does not tell the uuid",
		},
		"another UUID": {
			"libvirt_domain.web", func(r *tfprotov6.MoveResourceStateRequest) {
				r.SourceState.JSON = []byte(`{"id": "web", "name": "web"}`)
			},
			`"web" is no UUID`,
		},
		"no pool": {
			"libvirt_volume.web", func(r *tfprotov6.MoveResourceStateRequest) {
				r.SourceState.JSON = []byte(`{"id": "/a", "name": "web"}`)
			},
			"does not tell the pool",
		},
		"another form": {
			"libvirt_volume.web", func(r *tfprotov6.MoveResourceStateRequest) { r.SourceState.JSON = []byte(`{"name": {}}`) },
			"has not the form",
		},
		"a seed of 0.9": {
			"libvirt_cloudinit_disk.seed",
			func(r *tfprotov6.MoveResourceStateRequest) {
				r.SourceState.JSON = []byte(`{"id": "0a1b", "name": "seed", "path": "/tmp/cloudinit-0a1b.iso", "user_data": "secret"}`)
			},
			"libvirt_volume with its content: move that one",
		},
		"another type": {
			"libvirt_volume.web", func(r *tfprotov6.MoveResourceStateRequest) { r.SourceTypeName = "libvirt_pool" },
			"does not include support for the given source resource",
		},
		"a volume as a machine": {
			"libvirt_volume.web", func(r *tfprotov6.MoveResourceStateRequest) { r.TargetTypeName = "virtclaim_virtual_machine" },
			"does not include support for the given source resource",
		},
	} {
		req := former(t)[c.of]
		c.change(req)
		if got, refused := moved(t, req); got != nil || !strings.Contains(refused, c.want) || strings.Contains(refused, "secret") {
			t.Errorf("%s: got %v, %q, want %q", name, got, refused, c.want)
		}
	}
}

// A moved resource that no refresh has found is not planned: Terraform would replace it.
func TestProvider_UnreadMoveIsNotPlanned(t *testing.T) {
	server := NewServer(Release{Version: "test"})
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]values{
		"virtclaim_virtual_machine": {"name": "web", "uuid": "4f81ea58-7c30-470a-91bc-41ce46cf7cea"},
		"virtclaim_disk":            {"name": "web.qcow2", "pool": "ssd", "id": "/var/lib/libvirt/images/web.qcow2"},
	} {
		kind := schemas.ResourceSchemas[name].ValueType()
		wanted := maps.Clone(of)
		wanted["host"] = "host-a"
		for what, proposed := range map[string]values{"update": wanted, "destroy": nil} {
			planned, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
				TypeName: name, PriorState: dynamic(t, kind, of), Config: dynamic(t, kind, wanted),
				ProposedNewState: dynamic(t, kind, proposed),
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(planned.Diagnostics, func(d *tfprotov6.Diagnostic) bool {
				return d.Summary == "The moved resource was not read yet"
			}) {
				t.Errorf("%s of %s: %v", what, name, planned.Diagnostics)
			}
		}
	}
}
