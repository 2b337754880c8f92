package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/suite"
)

// CONTRIBUTING.md lists the tests that fail if an old mistake is made again.
func TestContributing_NamedTestsExist(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	const heading = "## Mistakes that others paid for\n"
	_, table, found := strings.Cut(string(text), heading)
	if !found {
		t.Fatalf("CONTRIBUTING.md has no %q", heading)
	}
	table, _, _ = strings.Cut(table, "\n## ")
	test := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[[:word:]]+)`")
	var all []string
	for row := range strings.Lines(table) {
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| mistake |") {
			continue
		}
		guards := test.FindAllStringSubmatch(row, -1)
		if len(guards) == 0 {
			t.Errorf("no test guards against: %s", row)
		}
		for _, guard := range guards {
			all = append(all, guard[1])
		}
	}
	if len(all) == 0 {
		t.Error("the table is empty")
	}
	suite.Has(t, all...)
}

// The pages on how to add something name files of the project.
func TestContributing_NamedFilesExist(t *testing.T) {
	pages, err := filepath.Glob("docs/contributing/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("there are no pages:", err)
	}
	inside, name := regexp.MustCompile("`(internal/[[:word:]/.]+)`"), regexp.MustCompile("`([[:word:]]+\\.go)`")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range inside.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(found[1]); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
		for _, found := range name.FindAllStringSubmatch(string(text), -1) {
			if files, _ := filepath.Glob("internal/*/*/" + found[1]); len(files) > 0 {
				continue
			}
			if files, _ := filepath.Glob("internal/*/" + found[1]); len(files) == 0 {
				t.Errorf("%s: there is no %s", page, found[1])
			}
		}
	}
}

// A link between the pages leads to a page.
func TestDocs_LinksLeadToFiles(t *testing.T) {
	pages := []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("there are no pages %s: %v", pattern, err)
		}
		pages = append(pages, found...)
	}
	link := regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(to[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), to[1])); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", page, to[1])
			}
		}
	}
}
