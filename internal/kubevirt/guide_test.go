package kubevirt

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// fieldTable is the table of the guide: each field of the manifests of the tests, with the attributes that differ without it, or why it is not
// carried over.
func fieldTable(t *testing.T) string {
	t.Helper()
	all := map[string]map[string]bool{}
	note := func(field, fate string) {
		if all[field] == nil {
			all[field] = map[string]bool{}
		}
		if fate != "" {
			all[field][fate] = true
		}
	}
	for _, text := range manifests(t, "") {
		objects := decoded(text)
		whole, left, err := become(t, objects)
		if err != nil {
			continue
		}
		for path, reason := range left {
			note(fieldName(path), reason)
		}
		for _, object := range objects {
			for _, other := range []any{nil, "/other", "3Gi"} { // without some fields a manifest is refused
				eachField(object, "", other, false, func(path string) {
					kind := object.(map[string]any)["kind"]
					without, _, err := become(t, objects)
					for attribute := range differences(whole, without) {
						if err == nil && path != "kind" {
							note(fieldName(fmt.Sprint(kind, " x: ", path)), "`"+attribute+"`")
						}
					}
				})
			}
		}
	}
	var table strings.Builder
	left := map[string][]string{} // fields that become nothing, by the reason
	for _, field := range slices.Sorted(maps.Keys(all)) {
		switch fates := slices.Sorted(maps.Keys(all[field])); {
		case len(fates) == 1 && !strings.HasPrefix(fates[0], "`"):
			left[fates[0]] = append(left[fates[0]], "`"+field+"`")
		case len(fates) > 3:
			fmt.Fprintf(&table, "| `%s` | %s, … |\n", field, strings.Join(fates[:3], ", "))
		case len(fates) > 0:
			fmt.Fprintf(&table, "| `%s` | %s |\n", field, strings.Join(fates, ", "))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(&table, "| %s | %s |\n", strings.Join(left[reason], ", "), reason)
	}
	return table.String()
}

func decoded(text string) (objects []any) {
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var object any
		if decoder.Decode(&object) != nil {
			return objects
		}
		if object != nil {
			objects = append(objects, object)
		}
	}
}

// become is what objects become, each attribute with its value, and what is left with its reasons.
func become(t *testing.T, objects []any) (attributes, left map[string]string, err error) {
	t.Helper()
	var texts []string
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	made, err := Convert(Manifest{strings.Join(texts, "---\n"), false})
	if err != nil {
		return nil, nil, err
	}
	left = map[string]string{}
	for _, field := range made["unsupported"].([]values) {
		left[field["path"].(string)] = field["reason"].(string)
	}
	delete(made, "unsupported")
	var plain, shape any
	text, err := json.Marshal(made)
	if err := errors.Join(err, json.Unmarshal(text, &plain), json.Unmarshal([]byte(Shape), &shape)); err != nil {
		t.Fatal(err)
	}
	attributes = map[string]string{}
	flatten(plain, shape, "", "", attributes)
	return attributes, left, nil
}

// flatten notes attributes by the names in the documentation, and their keys.
func flatten(v, shape any, name, keys string, to map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		of := shape.(map[string]any)
		if len(v) == 0 {
			to[name+" "+keys] = "{}"
		}
		for key, value := range v {
			if element, isMap := of["*"]; isMap {
				flatten(value, element, name, keys+"/"+key, to)
			} else {
				flatten(value, of[key], strings.TrimPrefix(name+"."+key, "."), keys, to)
			}
		}
	default:
		to[name+" "+keys] = fmt.Sprint(v)
	}
}

// differences are the names of attributes that differ.
func differences(a, b map[string]string) map[string]bool {
	all := map[string]bool{}
	for _, of := range [][2]map[string]string{{a, b}, {b, a}} {
		for at, value := range of[0] {
			if other, is := of[1][at]; !is || other != value {
				name, _, _ := strings.Cut(at, " ")
				all[name] = true
			}
		}
	}
	return all
}

// eachField calls visit for each field, or each that has no further ones, while the object has another value there, or, with nil, lacks it.
func eachField(v any, path string, other any, isAny bool, visit func(path string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			value, at := v[name], strings.TrimPrefix(path+"."+name, ".")
			fields, isMap := value.(map[string]any)
			items, isList := value.([]any)
			if isAny || !isMap && !isList || isMap && len(fields) == 0 || isList && len(items) > 0 && reflect.ValueOf(items[0]).Kind() == reflect.String {
				if v[name] = other; other == nil {
					delete(v, name)
				}
				visit(at)
				v[name] = value
			}
			eachField(value, at, other, isAny, visit)
		}
	case []any:
		for i, item := range v {
			eachField(item, fmt.Sprintf("%s[%d]", path, i), other, isAny, visit)
		}
	}
}

// names are how fields are summed up in the guide.
var names = []struct {
	path *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`^VirtualMachine(Instance)?( \S+)?: `), ""},
	{regexp.MustCompile(`^VirtualMachine(Cluster)?Instancetype( \S+)?: `), "instance type: "},
	{regexp.MustCompile(`^VirtualMachine(Cluster)?Preference( \S+)?: `), "preference: "},
	{regexp.MustCompile(`^(DataVolume|ConfigMap|Secret) \S+`), "$1"},
	{regexp.MustCompile(`\[\d+\]`), "[]"},
	{regexp.MustCompile(`spec\.template\.`), ""},
	{regexp.MustCompile(`\b(labels|annotations|data|stringData|binaryData|nodeSelector|chassis|hyperv|preferredHyperv|timer|preferredTimer|dhcpOptions|readinessProbe|resources\.limits|blockSize|inputs\[\]|virtualGPUOptions|pod)\..*`), "$1"},
	{regexp.MustCompile(`\b(ports|topologySpreadConstraints|accessCredentials|livenessProbe)\b.+`), "$1"},
}

// fieldName is the name of a field in the guide.
func fieldName(path string) string {
	for _, n := range names {
		path = n.path.ReplaceAllString(path, n.name)
	}
	return path
}

// The guide has the fields of the manifests of the tests, and what becomes of them.
func TestConvert_FieldsAreInTheGuide(t *testing.T) {
	const guide, head = "../../templates/guides/from-kubevirt.md", "| field | becomes, or why not |\n|---|---|\n"
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), head)
	_, after, _ := strings.Cut(rest, "\n\n")
	want := before + head + fieldTable(t) + "\n" + after
	if *update {
		if err := os.WriteFile(guide, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !found || string(text) != want {
		t.Errorf("the table of fields in %s is another one: go test ./internal/kubevirt -update, and make generate", guide)
	}
}
