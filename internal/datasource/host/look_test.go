package host

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	libvirthost "github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

func TestSchema_IsValid(t *testing.T) {
	var answer datasource.SchemaResponse
	New().Schema(t.Context(), datasource.SchemaRequest{}, &answer)
	if d := answer.Schema.ValidateImplementation(t.Context()); d.HasError() {
		t.Error(d)
	}
}

// there is a host with the pool ssd, whose target is /ssd; if err is set, all calls return it.
type there struct{ err error }

func (h there) Pool(_ context.Context, name string) (libvirthost.Pool, error) {
	if h.err == nil && name != "ssd" {
		return libvirthost.Pool{}, libvirthost.ErrNoPool
	}
	return libvirthost.Pool{Type: "dir", Path: "/ssd", Active: true, Capacity: 3, Allocation: 1, Available: 2}, h.err
}

func (h there) PoolOfTarget(_ context.Context, path string) (string, error) {
	if h.err == nil && path != "/ssd" {
		return "", libvirthost.ErrNotFound
	}
	return "ssd", h.err
}

func TestUsageTypes_AreShownUnchanged(t *testing.T) {
	ssd := usageModel{
		Pool: types.StringValue("ssd"), Type: types.StringValue("dir"), Path: types.StringValue("/ssd"), Active: types.BoolValue(true),
		Capacity: types.Int64Value(3), Allocated: types.Int64Value(1), Available: types.Int64Value(2),
	}
	forbidden, down := errors.New("nodes is forbidden"), errors.New("down")
	annotations := func(err error) func(context.Context) (map[string]string, error) {
		return func(context.Context) (map[string]string, error) {
			return map[string]string{
				"kubevirt.io/storage.usage-type.fast": "/ssd", "kubevirt.io/storage.usage-type.later": "/later", "other": "/x",
			}, err
		}
	}
	for name, c := range map[string]struct {
		host    there
		usage   content.UsageTypes
		want    map[string]usageModel
		warning string
		err     string
	}{
		"none": {want: map[string]usageModel{}},
		"of the configuration, which goes first": {
			usage: content.UsageTypes{Pools: map[string]string{"fast": "ssd"}, Annotations: annotations(forbidden)},
			want:  map[string]usageModel{"fast": ssd},
		},
		"of annotations, where a disk would make a pool": {
			usage: content.UsageTypes{Annotations: annotations(nil)},
			want:  map[string]usageModel{"fast": ssd, "later": {Path: types.StringValue("/later")}},
		},
		"of annotations that may not be read": {usage: content.UsageTypes{Annotations: annotations(forbidden)}, warning: "nodes is forbidden. Permit to"},
		"of a pool that is missing": {
			usage:   content.UsageTypes{Pools: map[string]string{"fast": "sdd"}},
			want:    map[string]usageModel{"fast": {Pool: types.StringValue("sdd"), Active: types.BoolValue(false)}},
			warning: "the storage pool sdd, which the host does not have",
		},
		"of a host that breaks": {host: there{down}, usage: content.UsageTypes{Annotations: annotations(nil)}, err: "down"},
	} {
		t.Run(name, func(t *testing.T) {
			var diags diag.Diagnostics
			got := usageTypes(t.Context(), c.host, c.usage, &diags)
			if c.err == "" && !maps.Equal(got, c.want) {
				t.Errorf("got %v", got)
			}
			if says(diags.Errors()) != (c.err != "") || !strings.Contains(details(diags.Errors()), c.err) {
				t.Errorf("got the errors %v", diags.Errors())
			}
			if says(diags.Warnings()) != (c.warning != "") || !strings.Contains(details(diags.Warnings()), c.warning) {
				t.Errorf("got the warnings %v", diags.Warnings())
			}
		})
	}
}

func says(d diag.Diagnostics) bool { return len(d) > 0 }

func details(all diag.Diagnostics) (text string) {
	for _, d := range all {
		text += d.Detail() + "\n"
	}
	return text
}
