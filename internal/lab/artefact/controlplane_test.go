package artefact

import (
	"os"
	"path/filepath"
	"testing"
)

// Each program is built again when any file of their module has changed: they may share packages.
func TestModuleHash_CoversEveryFile(t *testing.T) {
	source := t.TempDir()
	files := []string{"go.mod", "go.sum", "main.go", "kubelet/main.go", "shared/shared.go"}
	for _, name := range files {
		writeSource(t, source, name, "content")
	}
	seen := map[string]string{}
	for _, changed := range append(files, "none", "added.go") {
		if changed != "none" {
			writeSource(t, source, changed, "changed")
		}
		hash, err := moduleHash(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		if earlier, found := seen[hash]; found != (changed == "none") {
			t.Errorf("after the change of %s the hash is that after the change of %q", changed, earlier)
		}
		seen[hash] = changed
	}
}

func writeSource(t *testing.T, source, name, content string) {
	t.Helper()
	path := filepath.Join(source, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
