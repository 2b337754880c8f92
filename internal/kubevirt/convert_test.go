package kubevirt

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what manifests become to testdata")

// manifests are those of a folder, by their names.
func manifests(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d manifests in %s: %v", len(files), folder, err)
	}
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".yaml")] = string(text)
	}
	return all
}

// Each manifest becomes what is recorded of it, and each field that is not carried over is in that.
func TestConvert_Manifests(t *testing.T) {
	machines := 0
	for _, folder := range []string{"", "designs"} {
		for name, text := range manifests(t, folder) {
			t.Run(filepath.Join(folder, name), func(t *testing.T) {
				values, err := Convert(Manifest{text, true})
				var got any
				if err != nil {
					got = map[string]any{"error": err.Error()}
				} else {
					machines++
					got = values
				}
				compare(t, filepath.Join("testdata", "becomes", folder, name+".json"), got)
			})
		}
	}
	t.Logf("%d manifests become machines", machines)
}

// compare compares a value with a record, or writes it there.
func compare(t *testing.T, file string, got any) {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(got); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("it becomes something else:\n%s", diff)
	}
}

// What would change a machine's meaning is refused at its line.
func TestConvert_Refuses(t *testing.T) {
	expected := regexp.MustCompile(`^# want: (line \d+): (.+)\n`)
	for name, text := range manifests(t, "wrong") {
		t.Run(name, func(t *testing.T) {
			want := expected.FindStringSubmatch(text)
			_, err := Convert(Manifest{text, true})
			if want == nil || err == nil || !strings.Contains(err.Error(), want[1]+":") || !strings.Contains(err.Error(), want[2]) {
				t.Errorf("want %q, got %v", want, err)
			}
			if err != nil && len(err.Error()) > 300 {
				t.Errorf("%d characters: %v", len(err.Error()), err)
			}
		})
	}
}

// The items of a List are objects, those of others are not.
func TestConvert_Lists(t *testing.T) {
	const items = "\nitems:\n- {kind: VirtualMachineInstance, spec: {domain: {memory: {guest: 1Gi}}}}\n- {kind: Secret, metadata: {name: x}}\n"
	made, err := Convert(Manifest{"kind: List" + items, true})
	if err != nil || made["unsupported"].([]values)[0]["path"] != "Secret x" {
		t.Errorf("%v, %v", made, err)
	}
	if _, err := Convert(Manifest{"kind: Other" + items, true}); err == nil || !strings.Contains(err.Error(), "line 1: Other: kind: it is no machine") {
		t.Errorf("got %v", err)
	}
}

// A short text may refer to itself, or to more than a computer has memory for.
func TestConvert_RefusesAliases(t *testing.T) {
	bomb := "a: &a [x]\n"
	for name := 'b'; name <= 'z'; name++ {
		of := fmt.Sprintf("*%c", name-1)
		bomb += fmt.Sprintf("%c: &%c [%s]\n", name, name, strings.Join([]string{of, of, of, of, of, of}, ", "))
	}
	for text, want := range map[string]string{"spec: &spec\n  again: *spec\n": "contains itself", bomb: "excessive aliasing"} {
		if _, err := Convert(Manifest{text, true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

// Whatever a field is, or if it is missing, a manifest becomes values or is refused.
func TestConvert_AnyField(t *testing.T) {
	tried := 0
	for name, text := range manifests(t, "") {
		objects := decoded(text)
		for _, object := range objects {
			for _, other := range []any{"text", []any{map[string]any{}}, map[string]any{}} {
				eachField(object, "", other, true, func(path string) {
					defer func() {
						if found := recover(); found != nil {
							t.Fatalf("%s: %s = %v: %v", name, path, other, found)
						}
					}()
					tried++
					if _, _, err := become(t, objects); err != nil && len(err.Error()) > 300 {
						t.Errorf("%s: %s = %v: %d characters: %v", name, path, other, len(err.Error()), err)
					}
				})
			}
		}
	}
	t.Logf("%d manifests were tried", tried)
}

func BenchmarkConvert(b *testing.B) {
	text, err := os.ReadFile("testdata/windows.yaml")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Convert(Manifest{string(text), true}); err != nil {
			b.Fatal(err)
		}
	}
}

// No text makes the function fail otherwise than by an error.
func FuzzConvert(f *testing.F) {
	for _, folder := range []string{"", "designs", "wrong"} {
		files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
		if err != nil || len(files) == 0 {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		made, err := Convert(Manifest{text, true})
		if _, failed := json.Marshal(made); failed != nil || (made == nil) == (err == nil) {
			t.Errorf("%v, %v, %v", made, err, failed)
		}
	})
}
