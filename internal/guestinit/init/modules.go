//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
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
	var buffer []byte // one for all, because the machine may have little memory
	for _, name := range strings.Fields(string(names)) {
		path := filepath.Join("/modules", name)
		content, err := unpackModule(path, buffer)
		if err == nil {
			buffer, err = content, unix.InitModule(content, "")
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			say("load module %s: %v", name, err)
		}
		// The initial RAM disk is in memory, too.
		_ = os.Remove(path) //nolint:gosec // as below
	}
	_ = os.Remove(list) // they are loaded once
	debug.FreeOSMemory()
}

// unpackModule unpacks a file into a buffer, or a new one if it is too small.
func unpackModule(path string, buffer []byte) ([]byte, error) {
	packed, err := os.ReadFile(path) //nolint:gosec // the initial RAM disk names its own modules
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	size := int(binary.LittleEndian.Uint32(packed[len(packed)-4:])) // the end of gzip's format
	content := slices.Grow(buffer[:0], size)[:size]
	_, err = io.ReadFull(r, content)
	return content, err
}
