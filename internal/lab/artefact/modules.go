package artefact

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// module is a kernel module in the format of insmod.
type module struct {
	name    string
	content []byte
}

// loadModules returns the modules of these names with all their dependencies,
// in the order in which they must be loaded. dir is the folder of one kernel's
// modules; modules that are built into that kernel are left out.
func loadModules(dir string, names []string) ([]module, error) {
	files, err := moduleFiles(dir)
	if err != nil {
		return nil, fmt.Errorf("list the kernel's modules: %w", err)
	}
	builtin, err := builtinModules(dir)
	if err != nil {
		return nil, fmt.Errorf("list what is built into the kernel: %w", err)
	}
	loader := moduleLoader{files: files, present: builtin}
	for _, name := range names {
		if err := loader.load(name); err != nil {
			return nil, err
		}
	}
	return loader.loaded, nil
}

type moduleLoader struct {
	files   map[string]string // path by name
	present map[string]bool
	loaded  []module
}

// load appends the module after all its dependencies, unless it is loaded
// already.
func (l *moduleLoader) load(name string) error {
	if l.present[name] {
		return nil
	}
	l.present[name] = true
	path, ok := l.files[name]
	if !ok {
		return fmt.Errorf("the kernel has no module %s", name)
	}
	content, needs, err := readModule(path)
	if err != nil {
		return fmt.Errorf("read the kernel module %s: %w", path, err)
	}
	for _, need := range needs {
		if err := l.load(need); err != nil {
			return fmt.Errorf("for %s: %w", name, err)
		}
	}
	l.loaded = append(l.loaded, module{name, content})
	return nil
}

// moduleFiles maps the names of the modules in dir to their files.
func moduleFiles(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if name, ok := moduleName(path); ok {
			files[name] = path
		}
		return err
	})
	return files, err
}

// builtinModules is the set of modules that are part of the kernel itself.
func builtinModules(dir string) (map[string]bool, error) {
	list, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for path := range strings.Lines(string(list)) {
		if name, ok := moduleName(strings.TrimSpace(path)); ok {
			names[name] = true
		}
	}
	return names, nil
}

// moduleName is the module's own name, which has underscores where its file's
// name may have dashes.
func moduleName(path string) (name string, ok bool) {
	name, compression, ok := strings.Cut(filepath.Base(path), ".ko")
	known := slices.Contains([]string{"", ".gz", ".xz", ".zst"}, compression)
	return strings.ReplaceAll(name, "-", "_"), ok && known
}

// readModule returns a module, decompressed, and the names of its dependencies.
func readModule(path string) (content []byte, needs []string, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	content, err = decompress(raw)
	if err != nil {
		return nil, nil, err
	}
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, nil, err
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil, nil, errors.New("it has no section .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, nil, err
	}
	return content, moduleNeeds(string(info)), nil
}

// moduleNeeds finds the line of dependencies among the NUL-terminated ones.
func moduleNeeds(info string) []string {
	for line := range strings.SplitSeq(info, "\x00") {
		if list, ok := strings.CutPrefix(line, "depends="); ok && list != "" {
			return strings.Split(strings.ReplaceAll(list, "-", "_"), ",")
		}
	}
	return nil
}
