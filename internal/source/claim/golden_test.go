package claim_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden resolves the claim vms/golden of each manifest and compares all that comes out.
func TestGolden(t *testing.T) {
	manifests, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, manifest := range manifests {
		t.Run(strings.TrimSuffix(filepath.Base(manifest), ".yaml"), func(t *testing.T) {
			client := cluster.NewForClients("https://api", fake.NewClientset(decode(t, manifest)...), nil)
			resolved, _, err := claim.Resolve(t.Context(), client, golden, claim.Need{AccessMode: volume.WriteExclusive, Nodes: []string{"a"}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(resolved, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			file := strings.TrimSuffix(manifest, ".yaml") + ".golden.json"
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s differs:\n%s", file, diff)
			}
		})
	}
}

func decode(t *testing.T, manifest string) []runtime.Object {
	t.Helper()
	content, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(content)))
	buffer := make([]byte, len(content))
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(buffer[:n], nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}
