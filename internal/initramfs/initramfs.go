// Package initramfs reads Linux kernels with their modules from what distributions ship, and writes the initial RAM disk of a machine that
// runs a container image: an init and the modules that it loads.
package initramfs

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cavaliergopher/cpio"
	"github.com/klauspost/compress/gzip"
)

// Kernel is a kernel with those of its modules that a machine may need.
type Kernel struct {
	// Image is what QEMU starts.
	Image []byte
	// Architecture is amd64 or arm64.
	Architecture string
	// Release is that of the modules, like 6.1.0-56-amd64; empty for a kernel without any.
	Release string

	modules map[string][]byte // as in the archive, perhaps packed
	builtin map[string]bool
}

// The files of the initial RAM disk, as internal/programs/init reads them. A list has names of files, one per line, in the order in which
// they are loaded.
const (
	moduleFolder = "modules"
	// moduleList has the modules that are always loaded; with a dot and a type of file system appended, those for a mount of that type.
	moduleList = "modules.list"
)

// Write writes an initial RAM disk with that init. Without modules the kernel must have all that a machine needs.
func (k *Kernel) Write(w io.Writer, init []byte) error {
	lists, modules, err := k.lists()
	if err != nil {
		return err
	}
	packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	archive := cpio.NewWriter(packed)
	for _, folder := range []string{"dev", "proc", "sys", moduleFolder} {
		err = errors.Join(err, archive.WriteHeader(&cpio.Header{Name: folder, Mode: cpio.TypeDir | 0o755}))
	}
	add := func(name string, mode cpio.FileMode, content []byte) {
		err = errors.Join(err, archive.WriteHeader(&cpio.Header{Name: name, Mode: cpio.TypeReg | mode, Size: int64(len(content))}))
		_, failed := archive.Write(content)
		err = errors.Join(err, failed)
	}
	add("init", 0o755, init)
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		content, failed := pack(modules[name])
		err = errors.Join(err, failed)
		add(moduleFolder+"/"+name, 0o644, content)
	}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		add(name, 0o644, []byte(strings.Join(lists[name], "\n")+"\n"))
	}
	return errors.Join(err, archive.Close(), packed.Close())
}

// pack packs a module with gzip: what the initial RAM disk has is in the machine's memory, whether it is loaded or not.
func pack(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(content)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// lists are the lists of modules by their files' names, and all modules in them.
func (k *Kernel) lists() (lists map[string][]string, modules map[string][]byte, err error) {
	lists, modules = map[string][]string{moduleList: nil}, map[string][]byte{}
	if k.Release == "" {
		return lists, modules, nil
	}
	add := func(list string, names []string, isRequired bool) {
		ordered, failed := k.order(names, isRequired)
		err = errors.Join(err, failed)
		for _, m := range ordered {
			file := m.name + ".ko"
			if !slices.Contains(lists[list], file) && !slices.Contains(lists[moduleList], file) {
				lists[list] = append(lists[list], file)
			}
			modules[file] = m.content
		}
	}
	add(moduleList, useful, false)
	add(moduleList, required, true)
	for _, name := range slices.Sorted(maps.Keys(filesystems)) {
		add(moduleList+"."+name, filesystems[name], false)
	}
	return lists, modules, err
}
