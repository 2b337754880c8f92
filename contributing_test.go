package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
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

// What a test is named after is in its package, is a package, or one of these documents.
func TestContributing_TestsNameTheirSubject(t *testing.T) {
	documents := []string{"changes", "contributing", "docs", "guide", "rbac", "readme", "replacements", "securityguide", "troubleshooting"}
	subjects := map[string]map[string]bool{"": {}}
	for _, name := range documents {
		subjects[""][name] = true
	}
	var tests [][2]string
	for file, parsed := range goFiles(t) {
		folder := filepath.Dir(file)
		if subjects[folder] == nil {
			subjects[folder] = map[string]bool{}
		}
		subjects[""][filepath.Base(folder)], subjects[""][parsed.Name.Name] = true, true
		isTest := strings.HasSuffix(file, "_test.go")
		subjects[folder][strings.ToLower(strings.TrimSuffix(filepath.Base(file), ".go"))] = !isTest
		ast.Inspect(parsed, func(n ast.Node) bool {
			name, ok := n.(*ast.Ident)
			if ok && !isTest {
				subjects[folder][strings.ToLower(name.Name)] = true
			}
			if f, is := n.(*ast.FuncDecl); is && isTest && f.Recv == nil {
				tests = append(tests, [2]string{folder, f.Name.Name})
			}
			return true
		})
	}
	named := regexp.MustCompile(`^(?:TestAcc|Test|Fuzz)([A-Z][[:alnum:]]*)`)
	found := 0
	for _, test := range tests {
		subject := named.FindStringSubmatch(test[1])
		if subject == nil || test[1] == "TestMain" {
			continue
		}
		found++
		if name := strings.ToLower(subject[1]); !subjects[test[0]][name] && !subjects[""][name] {
			t.Errorf("%s in %s: the package has no %s. Name it after a function, a type, a package or a resource", test[1], test[0], subject[1])
		}
	}
	if found < 1000 {
		t.Errorf("there are %d tests only", found)
	}
}

// goFiles are the parsed files of the project.
func goFiles(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir("internal", func(path string, is fs.DirEntry, err error) error {
		if err != nil || is.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
