package provider

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// byText are the files that have to distinguish errors by their text, and why.
var byText = map[string]string{
	"host/hostfile.go": "libvirt has no field for the length of a file, which that error has; its code is compared",
	"host/overlays.go": "libvirt has no code for a pool that is busy",
	"image/redact.go":  "it looks whether a text has changed, not which error it is",
}

// Errors are distinguished by type or code. A text that another version words differently could remove a virtual machine from state, or
// create it twice.
func TestSource_ErrorsAreNotMatchedByText(t *testing.T) {
	seen := map[string]bool{}
	inspectSource(t, func(name string, at token.Position, n ast.Node) {
		if !comparesText(n) {
			return
		}
		if seen[name] = true; byText[name] == "" {
			t.Errorf("%s tells an error apart by its text", at)
		}
	})
	for name := range byText {
		if !seen[name] {
			t.Errorf("%s tells no error apart by its text any more: take it off the list", name)
		}
	}
}

// Without -f, qemu-img believes the header that a guest may have written to a raw disk, and opens the files that this names. So one function
// formats the commands, and guides have the option as well.
func TestSource_ConversionsNameTheFormat(t *testing.T) {
	const command = "qemu-img convert -"
	seen := false
	inspectSource(t, func(name string, at token.Position, n ast.Node) {
		text, ok := n.(*ast.BasicLit)
		if !ok || !strings.Contains(text.Value, "qemu-img convert") {
			return
		}
		if seen = true; name != "image/probe.go" || !strings.Contains(text.Value, command+"f ") {
			t.Errorf("%s prints qemu-img convert without image.ConvertCommand", at)
		}
	})
	if !seen {
		t.Error("image.ConvertCommand is not in image/probe.go any more")
	}
	guides, err := filepath.Glob("../../templates/guides/*")
	if err != nil || len(guides) == 0 {
		t.Fatal("there are no guides:", err)
	}
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), command) != strings.Count(string(text), command+"f ") {
			t.Errorf("%s has qemu-img convert without -f", guide)
		}
	}
}

// inspectSource calls f for each node of all production code but the lab's.
func inspectSource(t *testing.T, f func(name string, at token.Position, n ast.Node)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "lab/") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil {
				f(name, files.Position(n.Pos()), n)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// comparesText reports whether a comparison, or a call that searches a text, is of an error's text.
func comparesText(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if text, ok := n.Y.(*ast.BasicLit); ok && text.Value == `""` {
			return false
		}
		return (n.Op == token.EQL || n.Op == token.NEQ) && (isErrorText(n.X) || isErrorText(n.Y))
	case *ast.SwitchStmt:
		return n.Tag != nil && isErrorText(n.Tag)
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || len(n.Args) == 0 || !isErrorText(n.Args[0]) {
			return false
		}
		of, _ := f.X.(*ast.Ident)
		return of != nil && of.Name == "strings" && f.Sel.Name != "TrimSpace" || strings.HasPrefix(f.Sel.Name, "Match") || strings.HasPrefix(f.Sel.Name, "Find")
	}
	return false
}

// isErrorText reports whether an expression is an error's text, or the message in an error of libvirt's.
func isErrorText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		f, ok := e.Fun.(*ast.SelectorExpr)
		return ok && f.Sel.Name == "Error" && len(e.Args) == 0
	case *ast.SelectorExpr:
		return e.Sel.Name == "Message"
	}
	return false
}
