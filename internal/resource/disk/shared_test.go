package disk

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// hostsOf is a value of the attribute hosts.
func hostsOf(keys ...string) types.Set {
	var values []attr.Value
	for _, key := range keys {
		values = append(values, types.StringValue(key))
	}
	return types.SetValueMust(types.StringType, values)
}

func TestModel_HostKeys(t *testing.T) {
	for name, c := range map[string]struct {
		hosts types.Set
		want  string
		known bool
	}{
		"none":       {types.SetNull(types.StringType), "[host-a]", true},
		"two":        {hostsOf("host-b", "host-a"), "[host-a host-b]", true},
		"unknown":    {types.SetUnknown(types.StringType), "[host-a]", false},
		"one of two": {types.SetValueMust(types.StringType, []attr.Value{types.StringUnknown(), types.StringValue("host-a")}), "[host-a]", false},
	} {
		m := made(t, nil)
		m.Hosts = c.hosts
		if got := fmt.Sprint(m.hostKeys()); got != c.want || m.hostsKnown() != c.known {
			t.Errorf("%s: %s, known %t", name, got, m.hostsKnown())
		}
		if got := fmt.Sprint(m.top(host.StorageVolume{}, "").Hosts); got != c.want {
			t.Errorf("%s: the image has %s", name, got)
		}
	}
}

func TestModel_CheckHosts(t *testing.T) {
	for name, c := range map[string]struct {
		source any
		format string
		hosts  types.Set
		want   string
	}{
		"blank":                {nil, "qcow2", hostsOf("host-a", "host-b"), ""},
		"without its own":      {nil, "qcow2", hostsOf("host-b"), "The disk's own host is missing"},
		"raw":                  {nil, "raw", hostsOf("host-a", "host-b"), "A raw disk is of one host"},
		"raw of one host":      {nil, "raw", hostsOf("host-a"), ""},
		"container image":      {map[string]any{fromContainer: map[string]any{"image": "a/b:1"}}, "", hostsOf("host-a", "host-b"), "Its lower images are of one host"},
		"seed":                 {map[string]any{fromCloudInit: map[string]any{"user_data": "x"}}, "", hostsOf("host-a", "host-b"), "A raw disk is of one host"},
		"seed, unknown":        {map[string]any{fromCloudInit: map[string]any{"user_data": "x"}}, "", types.SetUnknown(types.StringType), ""},
		"image of a URL":       {map[string]any{fromURL: someURL}, "", hostsOf("host-a", "host-b"), ""},
		"none of its own, raw": {nil, "raw", types.SetNull(types.StringType), ""},
	} {
		var diags diag.Diagnostics
		m := made(t, c.source)
		m.Format, m.Hosts = types.StringValue(c.format), c.hosts
		m.checkHosts(&diags)
		var got string
		for _, d := range diags {
			got += d.Summary()
			if len(d.Detail()) > 300 {
				t.Errorf("%s: %d characters", name, len(d.Detail()))
			}
		}
		if got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Another of the disk's hosts may manage it, and a disk of one host goes to another one; otherwise another host makes it another disk.
func TestDisk_ReplacedByAnotherHost(t *testing.T) {
	for name, c := range map[string]struct {
		was, is types.Set
		host    string
		want    string
	}{
		"one of both":         {hostsOf("host-a", "host-b"), hostsOf("host-a", "host-b"), "host-b", "[]"},
		"and one more":        {hostsOf("host-a", "host-b"), hostsOf("host-a", "host-b", "host-c"), "host-b", "[]"},
		"not before":          {types.SetNull(types.StringType), hostsOf("host-a", "host-b"), "host-b", "[host]"},
		"not the former one":  {hostsOf("host-a", "host-b"), hostsOf("host-b"), "host-b", "[host]"},
		"without hosts":       {types.SetNull(types.StringType), types.SetNull(types.StringType), "host-b", "[]"},
		"hosts not known yet": {hostsOf("host-a", "host-b"), types.SetUnknown(types.StringType), "host-b", "[host]"},
		"same":                {hostsOf("host-a", "host-b"), hostsOf("host-a"), "host-a", "[]"},
	} {
		var diags diag.Diagnostics
		r := &disk{Resource: providerdata.Resource{Provider: &providerdata.Data{}}}
		plan, state := made(t, nil), made(t, nil)
		state.Hosts, plan.Hosts, plan.Host = c.was, c.is, types.StringValue(c.host)
		if got := fmt.Sprint(r.replacedBy(t.Context(), plan, state, &diags)); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		ok(t, diags)
	}
}

// A master must be there for all hosts, and all hosts that may write to it must see its overlays.
func TestModel_CheckMasterOfHosts(t *testing.T) {
	for name, c := range map[string]struct {
		binding, mode string
		master, hosts []string
		want          []string
	}{
		"binding of both":         {"b", "copy-on-write", []string{"host-a", "host-b"}, []string{"host-a", "host-b"}, nil},
		"binding of more":         {"b", "copy-on-write", []string{"host-a", "host-b", "host-c"}, []string{"host-a", "host-b"}, nil},
		"binding of one":          {"b", "copy-on-write", []string{"host-a"}, []string{"host-a", "host-b"}, []string{"Host not in the binding"}},
		"disk of both":            {"", "copy-on-write", []string{"host-a", "host-b"}, []string{"host-a", "host-b"}, nil},
		"disk of more":            {"", "copy-on-write", []string{"host-a", "host-b"}, []string{"host-a"}, []string{"Another host would not see the overlay"}},
		"clone of a disk of more": {"", "clone", []string{"host-a", "host-b"}, []string{"host-a"}, nil},
	} {
		var diags diag.Diagnostics
		master := tfvalue.VolumeObject(volume.Volume{Images: []volume.Image{{
			Type: "file", Format: "raw", Name: "/ssd/golden", AccessMode: volume.ReadShared, Hosts: c.master, Binding: c.binding,
		}}}, tfvalue.Unknowns{})
		m := made(t, map[string]any{fromVolume: master})
		m.CopyMode, m.Hosts = types.StringValue(c.mode), hostsOf(c.hosts...)
		m.checkMaster(t.Context(), &diags)
		var got []string
		for _, d := range diags {
			got = append(got, d.Summary())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
