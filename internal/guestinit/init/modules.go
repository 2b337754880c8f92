//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// FileSystemModules are those of data disks: they take memory, of which a small machine has little, and few machines need them.
var fileSystemModules = []string{"xfs", "libcrc32c", "vfat", "fat", "nls_ascii", "nls_cp437", "nls_iso8859-1", "nls_utf8"}

func isForDataDisks(module string) bool {
	name, _, _ := strings.Cut(module, ".")
	return slices.Contains(fileSystemModules, name)
}

// LoadModules loads the wanted ones of /modules.list, in its order. What a missing module leads to is said later, by who needs it.
func loadModules(wanted func(module string) bool) {
	list, err := os.ReadFile("/modules.list")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		say("list of modules: %v", err)
	}
	for _, name := range strings.Fields(string(list)) {
		if !wanted(name) {
			continue
		}
		path := filepath.Join("/modules", name)
		if err := loadModule(path); err != nil && !errors.Is(err, unix.EEXIST) {
			say("load module %s: %v", name, err)
		}
		// The initial RAM disk is in memory, too.
		_ = os.Remove(path) //nolint:gosec // as below
	}
}

func loadModule(path string) error {
	file, err := os.Open(path) //nolint:gosec // the initial RAM disk names its own modules
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return unix.FinitModule(int(file.Fd()), "", 0)
}
