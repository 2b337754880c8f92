package provider

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/yaml"
)

// The provider compiles for each platform of a release, as far as types tell. What it imports is read without the bodies of functions: a
// build for ten platforms takes half an hour.
func TestSource_CompilesForEachPlatform(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	p := fileParser{root: root + string(filepath.Separator)}
	files := token.NewFileSet()
	for _, platform := range platforms(t) {
		system, architecture, _ := strings.Cut(platform, "_")
		loaded, err := packages.Load(&packages.Config{
			Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax |
				packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedTypesSizes,
			Context: t.Context(), Dir: root, Fset: files, ParseFile: p.parse,
			Env: append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+system, "GOARCH="+architecture),
		}, ".")
		if err != nil {
			t.Fatal(platform, err)
		}
		own := 0
		packages.Visit(loaded, nil, func(pkg *packages.Package) {
			if !strings.HasPrefix(pkg.PkgPath, "github.com/virtclaim/") {
				return
			}
			own++
			for _, err := range pkg.Errors {
				t.Errorf("%s: %s", platform, err)
			}
		})
		if own < 30 {
			t.Errorf("%s: only %d packages of our own were read", platform, own)
		}
	}
}

// platforms are those that .goreleaser.yml builds for, as in linux_amd64.
func platforms(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../.goreleaser.yml")
	if err != nil {
		t.Fatal(err)
	}
	var release struct {
		Builds []struct {
			Targets []string `json:"targets"`
		} `json:"builds"`
	}
	if err := yaml.Unmarshal(text, &release); err != nil {
		t.Fatal(err)
	}
	if len(release.Builds) != 1 || len(release.Builds[0].Targets) == 0 {
		t.Fatalf("got %+v", release)
	}
	return release.Builds[0].Targets
}

// fileParser parses each file once for all platforms, and those outside of root without the bodies of functions.
type fileParser struct {
	root  string
	files sync.Map // of *ast.File by name
}

func (p *fileParser) parse(files *token.FileSet, name string, text []byte) (*ast.File, error) {
	if known, ok := p.files.Load(name); ok {
		return known.(*ast.File), nil
	}
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return file, err
	}
	if !strings.HasPrefix(name, p.root) {
		removeBodies(file)
	}
	p.files.Store(name, file)
	return file, nil
}

func removeBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name != "init" {
			f.Body = nil
		}
	}
}
