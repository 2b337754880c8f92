package provider

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// A usage type that is left out is the host's only one; what is there keeps its own. No error is one of a bug, no plan one of a guess.
func TestProvider_DefaultUsageType(t *testing.T) {
	one, two := values{"fast": "ssd"}, values{"fast": "ssd", "slow": "rust"}
	const unknown = tftypes.UnknownValue
	for name, c := range map[string]struct {
		storage       any
		config, state values
		// want is the planned value, or the beginning of the error.
		want       any
		err        string
		isReplaced bool
	}{
		"only one":               {storage: one, want: "fast"},
		"one of several":         {storage: two, err: "host a has the usage types fast, slow: set usage_type to one of them"},
		"none":                   {storage: nil, err: "host a has no usage types: add storage"},
		"configured":             {storage: two, config: values{"usage_type": "slow"}, want: "slow"},
		"not there":              {storage: one, config: values{"usage_type": "slow"}, err: `host a has no usage type "slow"; it has fast`},
		"unknown":                {storage: two, config: values{"usage_type": unknown}, want: unknown},
		"of an unknown host":     {storage: two, config: values{"host": unknown}, want: unknown},
		"of an unknown provider": {storage: unknown, want: unknown},
		"second storage":         {storage: two, state: values{"usage_type": "slow"}, want: "slow"},
		"kept, unknown provider": {storage: unknown, state: values{"usage_type": "slow"}, want: "slow"},
		"kept, unknown host":     {storage: two, config: values{"host": unknown}, state: values{"usage_type": "slow"}, want: "slow"},
		"other host":             {storage: one, state: values{"usage_type": "slow", "host": "b"}, want: "fast", isReplaced: true},
		"imported":               {storage: one, state: values{}, want: "fast"},
		"imported, several":      {storage: two, state: values{}, err: "host a has the usage types fast, slow:"},
	} {
		for kind, of := range map[string]values{
			"virtclaim_disk":   {"host": "a", "name": "x", "size": "1Gi"},
			"virtclaim_kernel": {"host": "a", "name": "x", "source": values{"host_path": "/boot/vmlinuz"}},
		} {
			isImported := c.state != nil && c.state["usage_type"] == nil && c.err == ""
			if kind == "virtclaim_disk" && (isImported || c.isReplaced) {
				continue // its host would be asked
			}
			t.Run(kind+" "+name, func(t *testing.T) {
				hosts := values{"a": values{"uri": "qemu+tcp://127.0.0.1:1/system", "storage": c.storage}}
				got, replaced, errs := planned(t, hosts, kind, of, c.config, c.state)
				if c.err != "" {
					if len(errs) != 1 || !strings.HasPrefix(errs[0].Detail, c.err) || errs[0].Attribute.String() != `AttributeName("usage_type")` {
						t.Errorf("got %v", errs)
					}
					return
				}
				if want := tftypes.NewValue(tftypes.String, c.want); len(errs) > 0 || !got.Equal(want) || replaced != c.isReplaced {
					t.Errorf("got %s (replaced: %v), %v", got, replaced, errs)
				}
			})
		}
	}
}

// planned is the planned usage type of a resource with these attributes and those of config, beside a state with those of state.
func planned(t *testing.T, hosts values, kind string, of, config, state values) (tftypes.Value, bool, []*tfprotov6.Diagnostic) {
	t.Helper()
	if state != nil {
		more := values{"id": "a/ssd/x", "pool": "ssd", "digest": "sha256:0", "format": "qcow2"}
		if kind == "virtclaim_kernel" {
			delete(more, "format")
			more["boot"] = values{"kernel": "/k", "initrd": "/i", "cmdline": "quiet"}
		}
		state = merged(of, more, state)
	}
	resp := plan(t, hosts, kind, merged(of, config), state, values{"usage_type": state["usage_type"]})
	if errs := slices.DeleteFunc(resp.Diagnostics, func(d *tfprotov6.Diagnostic) bool { return !isError(d) }); len(errs) > 0 {
		return tftypes.Value{}, false, errs
	}
	attributes := map[string]tftypes.Value{}
	value, err := resp.PlannedState.Unmarshal(schemas(NewServer(Release{}))(t.Context()).ResourceSchemas[kind].ValueType())
	if err == nil {
		err = value.As(&attributes)
	}
	if err != nil {
		t.Fatal(err)
	}
	return attributes["usage_type"], len(resp.RequiresReplace) > 0, nil
}
