//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ModuleList names the modules that every machine needs; with a dot and a file system appended, those of that file system: they take memory, of which a
// small machine has little, and few machines need them.
const moduleList = "/modules.list"

// LoadModules loads what a list names, in its order. What a missing module leads to is said later, by who needs it.
func loadModules(list string) {
	names, err := os.ReadFile(list)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		say("list of modules: %v", err)
	}
	for _, name := range strings.Fields(string(names)) {
		path := filepath.Join("/modules", name)
		err := loadModule(path)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			say("load module %s: %v", name, err)
		}
		// The initial RAM disk is in memory, too.
		_ = os.Remove(path) //nolint:gosec // as below
	}
	_ = os.Remove(list) // they are loaded once
}

func loadModule(path string) error {
	file, err := os.Open(path) //nolint:gosec // the initial RAM disk names its own modules
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return unix.FinitModule(int(file.Fd()), "", 0)
}
