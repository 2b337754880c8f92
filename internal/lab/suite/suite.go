// Package suite knows all tests of the project, and in which tier each of them runs: make test-unit, make test, or a shard of make
// test-long.
package suite

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Test is a test, fuzz target or benchmark.
type Test struct {
	Name string
	// Package is its folder below internal, with slashes.
	Package string
	// Real is set if its file has the build constraint acc: it needs the lab's real systems.
	Real bool
}

// Shard is a part of make test-long.
type Shard struct {
	Name, Package string
	// Tests match the beginnings of its tests' names.
	Tests []*regexp.Regexp
}

//go:embed shards
var table string

// Shards are those of the file shards, which run.sh reads, too.
func Shards() (all []Shard, err error) {
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case fields[0] == "shard" && len(fields) > 5:
			all = append(all, Shard{Name: fields[1], Package: fields[3]})
		case len(fields) == 1 && len(all) > 0:
			tests, err := regexp.Compile("^" + fields[0])
			if err != nil {
				return nil, err
			}
			last := &all[len(all)-1]
			last.Tests = append(last.Tests, tests)
		default:
			return nil, fmt.Errorf("not a line of a shard: %q", line)
		}
	}
	return all, nil
}

// Has reports whether a shard runs a test.
func (s Shard) Has(t Test) bool {
	below, all := strings.CutSuffix(s.Package, "/...")
	here := t.Package == below || all && strings.HasPrefix(t.Package, below+"/")
	return here && slices.ContainsFunc(s.Tests, func(tests *regexp.Regexp) bool { return tests.MatchString(t.Name) })
}

var (
	function = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)[\pL\w]*)\(`)
	// testMain sets up the tests of a package, and is none.
	testMain = "TestMain"
)

// Tests are all below the folder internal of the checkout, which the working directory is in.
var Tests = sync.OnceValues(func() (all []Test, err error) {
	root, err := internal()
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, found := range function.FindAllStringSubmatch(string(text), -1) {
			if found[1] != testMain {
				all = append(all, Test{found[1], filepath.ToSlash(dir), strings.HasPrefix(string(text), "//go:build acc\n")})
			}
		}
		return err
	})
	return all, err
})

// internal is the checkout's folder of that name.
func internal() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "internal"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in a checkout", start)
		}
	}
}

// Has checks that each of those tests exists, in any package: a document or table that names a test as proof must name an existing one.
func Has(t *testing.T, names ...string) {
	t.Helper()
	all, err := Tests()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d tests are there: %v", len(all), err)
	}
	there := map[string]bool{}
	for _, test := range all {
		there[test.Name] = true
	}
	for _, name := range names {
		if !there[name] {
			t.Errorf("there is no test %s", name)
		}
	}
}
