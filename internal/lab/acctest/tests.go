package acctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)

// HasTests checks that each of those tests exists, in any package: a document or table that names a test as proof must name an existing
// one.
func HasTests(t *testing.T, names ...string) {
	t.Helper()
	root, err := lab.Root()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	err = filepath.WalkDir(filepath.Join(root, "internal"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range testFunction.FindAllSubmatch(text, -1) {
			there[string(found[1])] = true
		}
		return err
	})
	if err != nil || len(there) == 0 {
		t.Fatalf("%d tests are there: %v", len(there), err)
	}
	for _, name := range names {
		if !there[name] {
			t.Errorf("there is no test %s", name)
		}
	}
}
