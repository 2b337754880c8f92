package provider

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guide"
)

// maxMessage is the maximum length of a message in characters. Longer explanations belong in the guides.
const maxMessage = 300

// A message says what is wrong and where, then the one thing that helps, then, where there is more to know, which part of a guide has it.
func TestSource_MessagesAreShort(t *testing.T) {
	seen := 0
	for _, m := range messages(t) {
		if seen++; len(m.text) > maxMessage && !strings.HasPrefix(m.text, "<") {
			t.Errorf("%s: a message of %d characters, and not of %d at most: %s", m.at, len(m.text), maxMessage, m.text)
		}
	}
	if seen < 1000 {
		t.Errorf("only %d texts were found", seen)
	}
}

// A link leads to a heading of a guide. Anchors are as the registry makes them of headings.
func TestSource_LinksLeadToHeadings(t *testing.T) {
	link := regexp.MustCompile(regexp.QuoteMeta(guide.See) + `([a-z-]*)(?:#([a-z-]*))?`)
	seen := 0
	for _, m := range messages(t) {
		for _, to := range link.FindAllStringSubmatch(m.text, -1) {
			if m.text == guide.See {
				continue
			}
			if seen++; !slices.Contains(anchors(t, to[1]), to[2]) {
				t.Errorf("%s: the guide %q has no heading %q", m.at, to[1], to[2])
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d links were found", seen)
	}
}

// anchors are those of a guide's headings.
func anchors(t *testing.T, name string) (all []string) {
	t.Helper()
	pages, err := filepath.Glob("../../templates/guides/" + name + ".md*")
	if err != nil || len(pages) != 1 {
		t.Fatalf("the guide %q is %q: %v", name, pages, err)
	}
	page, err := os.ReadFile(pages[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, heading := range regexp.MustCompile(`(?m)^##+ (.+)$`).FindAllStringSubmatch(string(page), -1) {
		plain := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all = append(all, strings.ReplaceAll(plain, " ", "-"))
	}
	return all
}

// message is a text of the program: constants that are joined, without what is only known when it runs.
type message struct {
	at   token.Position
	text string
}

// constants are the packages' constants and variables that are texts, and which argument of their functions is the description of an attribute.
type constants struct {
	files        *token.FileSet
	values       map[string]ast.Expr
	descriptions map[string][]int
}

// messages are all texts of production code, such as messages, but descriptions of attributes, and the usage of programs.
func messages(t *testing.T) []message {
	t.Helper()
	s := constants{token.NewFileSet(), map[string]ast.Expr{}, map[string][]int{}}
	var parsed []*ast.File
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		name := filepath.ToSlash(path)
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "../lab/") {
			return err
		}
		file, err := parser.ParseFile(s.files, path, nil, parser.SkipObjectResolution)
		parsed = append(parsed, file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range parsed {
		s.declare(file)
	}
	var all []message
	for _, file := range parsed {
		all = append(all, s.of(file.Name.Name, file)...)
	}
	return all
}

// declare notes what a file declares, in functions, too.
func (s constants) declare(file *ast.File) {
	in := file.Name.Name + "."
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, value := range n.Values {
				s.values[in+n.Names[i].Name] = value
			}
		case *ast.FuncDecl:
			s.describe(in+n.Name.Name, n.Type)
		case *ast.AssignStmt:
			for i, value := range n.Rhs {
				name, _ := n.Lhs[i].(*ast.Ident)
				if f, ok := value.(*ast.FuncLit); ok && name != nil {
					s.describe(in+name.Name, f.Type)
				}
			}
		}
		return true
	})
}

// describe notes which argument of a function is a description.
func (s constants) describe(name string, f *ast.FuncType) {
	at := 0
	for _, field := range f.Params.List {
		for _, parameter := range field.Names {
			if parameter.Name == "description" || parameter.Name == "pullPolicy" {
				s.descriptions[name] = append(s.descriptions[name], at)
			}
			at++
		}
	}
}

// of are the texts of a part of a file.
func (s constants) of(in string, part ast.Node) []message {
	var all []message
	ast.Inspect(part, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			return n.Names[0].Name != "usage"
		case *ast.KeyValueExpr:
			key, _ := n.Key.(*ast.Ident)
			return key == nil || !strings.HasSuffix(key.Name, "Description")
		case *ast.CallExpr:
			at, ok := s.descriptions[called(in, n)]
			if !ok {
				return true
			}
			for i, argument := range n.Args {
				if !slices.Contains(at, i) {
					all = append(all, s.of(in, argument)...)
				}
			}
			return false
		case *ast.BinaryExpr, *ast.BasicLit:
			if text := s.fold(in, n.(ast.Expr)); text != "" {
				all = append(all, message{s.files.Position(n.Pos()), text})
				return false
			}
		}
		return true
	})
	return all
}

// called is the name of the function that a call is of.
func called(in string, call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return in + "." + f.Name
	case *ast.SelectorExpr:
		if of, ok := f.X.(*ast.Ident); ok {
			return of.Name + "." + f.Sel.Name
		}
	}
	return ""
}

func (s constants) fold(in string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		if e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return s.fold(in, e.X) + s.fold(in, e.Y)
		}
	case *ast.ParenExpr:
		return s.fold(in, e.X)
	case *ast.Ident:
		if value := s.values[in+"."+e.Name]; value != nil {
			return s.fold(in, value)
		}
	case *ast.SelectorExpr:
		of, _ := e.X.(*ast.Ident)
		if of != nil && s.values[of.Name+"."+e.Sel.Name] != nil {
			return s.fold(of.Name, s.values[of.Name+"."+e.Sel.Name])
		}
	}
	return ""
}
