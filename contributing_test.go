package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/suite"
)

// One page lists the tests that fail if an old mistake is made again, and another one those that show what works.
func TestContributing_NamedTestsExist(t *testing.T) {
	inRows(t, "docs/contributing/mistakes.md")
	inRows(t, "docs/contributing/evidence.md")
}

// inRows checks that each row of a page's tables names tests, and that they are there.
func inRows(t *testing.T, page string) {
	t.Helper()
	var all []string
	for _, row := range rowsOf(t, page) {
		guards := testsIn(row)
		if len(guards) == 0 && !strings.Contains(row, "`make demo`") {
			t.Errorf("%s: no test stands beside: %s", page, row)
		}
		all = append(all, guards...)
	}
	if len(all) == 0 {
		t.Errorf("the tables of %s are empty", page)
	}
	suite.Has(t, all...)
}

// rowsOf are the rows of a page's tables, without their heads.
func rowsOf(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	before := ""
	for row := range strings.Lines(string(text)) {
		if strings.HasPrefix(before, "|") && strings.HasPrefix(row, "| ") {
			rows = append(rows, row)
		}
		before = row
	}
	return rows
}

// testsIn are the tests that a row names.
func testsIn(row string) (names []string) {
	for _, name := range regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[[:word:]]+)[`/]").FindAllStringSubmatch(row, -1) {
		names = append(names, name[1])
	}
	return names
}

// A feature that we say to have has a test, and the page's last line is the count of all.
func TestContributing_PeersAreCounted(t *testing.T) {
	const page = "docs/contributing/peers.md"
	counts, seen := map[string]int{"yes": 0, "partly": 0, "XML": 0, "no": 0}, map[string]bool{}
	var tests []string
	rows := rowsOf(t, page)
	for _, row := range rows {
		cells := strings.Split(row, "|")
		if len(cells) != 6 || seen[cells[2]] {
			t.Fatalf("%s: a row has not four cells, or its feature is there twice: %s", page, row)
		}
		ours, named := strings.TrimSpace(cells[3]), testsIn(row)
		if _, known := counts[ours]; !known {
			t.Errorf("%s: a feature is yes, partly, XML or no: %s", page, row)
		}
		if ours == "yes" && len(named) == 0 {
			t.Errorf("%s: no test stands beside: %s", page, row)
		}
		counts[ours]++
		seen[cells[2]] = true
		tests = append(tests, named...)
	}
	suite.Has(t, tests...)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d rows: %d yes, %d partly, %d XML, %d no.",
		len(rows), counts["yes"], counts["partly"], counts["XML"], counts["no"])
	if len(rows) != 132 || !strings.HasSuffix(string(text), "\n\n"+want+"\n") {
		t.Errorf("%s: it must have 132 rows, and its last line must be: %s", page, want)
	}
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

// Pages that people write are read in an editor, and in one sitting. Tables, code and links are as long as they are.
func TestDocs_PagesFit(t *testing.T) {
	const columns, most = 120, 300
	found := 0
	for _, pattern := range []string{"*.md", "templates/*", "templates/guides/*", "docs/contributing/*", "docs/decisions/*"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				continue // a folder
			}
			found++
			if n := strings.Count(string(text), "\n"); n > most {
				t.Errorf("%s has %d lines, more than %d", page, n, most)
			}
			for n, line := range proseOf(string(text)) {
				if utf8.RuneCountInString(line) > columns && !strings.Contains(line, "](https://") {
					t.Errorf("%s:%d is longer than %d columns", page, n, columns)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("there are %d pages only", found)
	}
}

// proseOf are the lines of a page by their numbers, without those of its head, its code and its tables.
func proseOf(page string) map[int]string {
	lines := map[int]string{}
	isCode, isHead := false, strings.HasPrefix(page, "---\n")
	n := 0
	for line := range strings.Lines(page) {
		n++
		switch trimmed := strings.TrimSpace(line); {
		case isHead:
			isHead = n == 1 || trimmed != "---"
		case strings.HasPrefix(trimmed, "```"):
			isCode = !isCode
		case !isCode && !strings.HasPrefix(trimmed, "|"):
			lines[n] = strings.TrimRight(line, "\n")
		}
	}
	return lines
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
