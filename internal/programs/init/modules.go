//go:build linux

package main

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// moduleList names the modules that every machine needs; with a dot and a file system appended, those of that file system: they take
// memory, of which a small machine has little, and few machines need them.
const moduleList = "/modules.list"

// loadModules loads what a list names, in its order. What a missing module leads to is said later, by who needs it.
func loadModules(list string) {
	names, err := os.ReadFile(list)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		say("list of modules: %v", err)
	}
	spareMemory()
	files := strings.Fields(string(names))
	buffer := make([]byte, largest(files)) // one for all
	for _, name := range files {
		path := filepath.Join("/modules", name)
		content, err := unpackModule(path, buffer)
		if err == nil {
			err = unix.InitModule(content, "")
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

// spareMemory keeps the kernel from setting some MiB aside against fragmentation: with 96 MiB the modules need them.
func spareMemory() {
	if err := os.WriteFile("/proc/sys/vm/watermark_boost_factor", []byte("0"), 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
		say("%v", err)
	}
}

// largest is the size in bytes of the largest of these modules.
func largest(files []string) (size int) {
	for _, name := range files {
		file, err := os.Open(filepath.Join("/modules", name)) //nolint:gosec // the initial RAM disk names its own modules
		if err != nil {
			continue
		}
		if unpacked, err := unpackedSize(file); err == nil {
			size = max(size, unpacked)
		}
		_ = file.Close()
	}
	return size
}

// unpackedSize is the end of a file of gzip.
func unpackedSize(file *os.File) (int, error) {
	var end [4]byte
	info, err := file.Stat()
	if err == nil {
		_, err = file.ReadAt(end[:], info.Size()-int64(len(end)))
	}
	return int(binary.LittleEndian.Uint32(end[:])), err
}

// unpackModule unpacks a module into a buffer that is large enough.
func unpackModule(path string, buffer []byte) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // as above
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	size, err := unpackedSize(file)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	_, err = io.ReadFull(r, buffer[:size])
	return buffer[:size], err
}
