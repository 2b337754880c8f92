package provider_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/suite"
)

// Each trust boundary of the guide on security names existing tests.
func TestSecurityGuide_BoundariesHaveTests(t *testing.T) {
	root, err := lab.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "templates", "guides", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| boundary | what is checked | tests |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	names := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	rows := strings.Split(table, "\n")
	if len(rows) < 8 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		found := names.FindAllStringSubmatch(row, -1)
		if len(found) == 0 {
			t.Error("no test:", row)
		}
		for _, name := range found {
			suite.Has(t, name[1])
		}
	}
}
