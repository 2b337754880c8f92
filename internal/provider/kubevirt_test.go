package provider

import (
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// becomes is what the function kubevirt_machine makes of the manifests of its test.
func becomes(t *testing.T) map[string]values {
	t.Helper()
	all := map[string]values{}
	for _, folder := range []string{"", "designs"} {
		files, err := filepath.Glob(filepath.Join("../kubevirt/testdata/becomes", folder, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no manifests: %v", err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var of map[string]any
			if err := json.Unmarshal(text, &of); err != nil {
				t.Fatal(err)
			}
			all[filepath.Join(folder, strings.TrimSuffix(filepath.Base(file), ".json"))] = plainConfig(of).(values)
		}
	}
	return all
}

// plainConfig is a value of JSON as one of a configuration. A volume is known after the apply.
func plainConfig(v any) any {
	switch v := v.(type) {
	case map[string]any:
		all := values{}
		for name, value := range v {
			if all[name] = plainConfig(value); name == "volume" {
				all[name] = tftypes.UnknownValue
			}
		}
		return all
	case []any:
		for i := range v {
			v[i] = plainConfig(v[i])
		}
		return v
	case float64:
		return big.NewFloat(v)
	}
	return v
}

// What manifests become has the attributes of the resources, with values that they take. At least 31 of the 36 that users have become machines.
func TestProvider_TakesManifests(t *testing.T) {
	machines := 0
	for name, of := range becomes(t) {
		machine, is := of["machine"].(values)
		if !is {
			continue
		}
		t.Run(name, func(t *testing.T) {
			machine["host"] = "node-a"
			for _, more := range []string{"namespace", "host_devices"} { // for the module alone
				delete(machine, more)
			}
			if machine["memory"] == nil {
				machine["memory"] = "1Gi"
			}
			if machine["name"] == nil && machine["name_prefix"] == nil {
				machine["name"] = "web"
			}
			for _, of := range sub(machine, "interfaces") {
				for _, more := range []string{"pod", "multus", "binding"} {
					delete(of.(values), more)
				}
				of.(values)["network"] = "default"
			}
			taken(t, "virtclaim_virtual_machine", machine)
			for _, disk := range sub(of, "disks") {
				taken(t, "virtclaim_disk", with(disk, "host", "name"))
			}
			for _, binding := range sub(of, "bindings") {
				delete(binding.(values), "claim")
				taken(t, "virtclaim_volume_binding", with(with(binding, "name"), "hosts"))
			}
			for _, content := range sub(of, "contents") {
				delete(content.(values), "binding")
				content.(values)["target"] = tftypes.UnknownValue
				taken(t, "virtclaim_volume_content", content.(values))
			}
			machines++
		})
	}
	if machines < 60 {
		t.Errorf("only %d manifests become machines", machines)
	}
}

func sub(of values, name string) values {
	all, _ := of[name].(values)
	return all
}

func with(of any, names ...string) values {
	for _, name := range names {
		of.(values)[name] = "node-a"
		if name == "hosts" {
			of.(values)[name] = []any{"node-a"}
		}
	}
	return of.(values)
}

// taken checks that a resource takes a configuration, and has all of its attributes.
func taken(t *testing.T, resource string, config values) {
	t.Helper()
	typ := schemas(NewServer(Release{Version: "test"}))(t.Context()).ResourceSchemas[resource].ValueType()
	for _, name := range strangers(typ, config, "") {
		t.Errorf("%s has no attribute %s", resource, name)
	}
	if said := refusals(t, resource, config); said != "" {
		t.Errorf("%s: %s", resource, said)
	}
}

// strangers are names in a configuration that a type does not have.
func strangers(typ tftypes.Type, v any, at string) (all []string) {
	of, is := v.(values)
	if !is {
		return nil
	}
	for name, value := range of {
		object, isObject := typ.(tftypes.Object)
		switch element := object.AttributeTypes[name]; {
		case !isObject:
			all = append(all, strangers(typ.(tftypes.Map).ElementType, value, at+name+".")...)
		case element == nil:
			all = append(all, at+name)
		default:
			all = append(all, strangers(element, value, at+name+".")...)
		}
	}
	return all
}
