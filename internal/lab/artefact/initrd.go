package artefact

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/cavaliergopher/cpio"
)

// writeInitrd writes the guest's root: BusyBox, the modules, numbered in the
// order to load them in, the modules that are loaded on request, each with a
// list of its dependencies, and two scripts.
func writeInitrd(path string, busybox []byte, modules []module, more map[string][]module) error {
	entries := []entry{
		folderEntry("proc"), folderEntry("sys"), folderEntry("dev"), folderEntry("tmp"),
		folderEntry("bin"), fileEntry("bin/busybox", busybox),
		{"bin/sh", cpio.TypeSymlink | 0o777, []byte("busybox")},
		folderEntry("sbin"), fileEntry("sbin/power-off", powerOffScript),
		folderEntry("modules"),
		// Where BusyBox' acpid looks for the action of the power button.
		folderEntry("etc"), folderEntry("etc/acpi"), folderEntry("etc/acpi/PWRF"),
		{"etc/acpi/PWRF/00000080", cpio.TypeSymlink | 0o777, []byte("/sbin/power-off")},
		fileEntry("init", initScript),
	}
	for i, module := range modules {
		entries = append(entries, fileEntry(fmt.Sprintf("modules/%02d-%s.ko", i, module.name), module.content))
	}
	entries = append(entries, moreEntries(more)...)

	file, err := os.Create(path)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(file)
	err = writeArchive(buffered, entries)
	return errors.Join(err, buffered.Flush(), file.Close())
}

func moreEntries(more map[string][]module) []entry {
	entries := []entry{folderEntry("more")}
	written := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		list := ""
		for _, module := range more[name] {
			list += module.name + "\n"
			if !written[module.name] {
				written[module.name] = true
				entries = append(entries, fileEntry("more/"+module.name+".ko", module.content))
			}
		}
		entries = append(entries, fileEntry("more/"+name, []byte(list)))
	}
	return entries
}

// entry is one file, folder or link of the archive; a link's content is its
// target.
type entry struct {
	name    string
	mode    cpio.FileMode
	content []byte
}

func folderEntry(name string) entry {
	return entry{name, cpio.TypeDir | 0o755, nil}
}

func fileEntry(name string, content []byte) entry {
	return entry{name, cpio.TypeReg | 0o755, content}
}

func writeArchive(w *bufio.Writer, entries []entry) error {
	compressed := gzip.NewWriter(w)
	archive := cpio.NewWriter(compressed)
	for _, entry := range entries {
		header := &cpio.Header{Name: entry.name, Mode: entry.mode, Size: int64(len(entry.content))}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("archive %s: %w", entry.name, err)
		}
		if _, err := archive.Write(entry.content); err != nil {
			return fmt.Errorf("archive %s: %w", entry.name, err)
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}
