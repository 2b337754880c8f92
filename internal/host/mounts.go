package host

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// mountTable is the kernel's mount table of libvirt's mount namespace; proc(5) has its format.
const mountTable = "/proc/self/mountinfo"

// mount is a line of that table.
type mount struct {
	// target is the mount point; source is the mounted device or export, as mount(8) lists it.
	target, source string
	// kind is the type of its filesystem.
	kind    string
	options []string
	location
}

// location is a path within a filesystem, without symbolic links.
type location struct {
	// filesystem is the device number; source is that of the mount, because filesystems of one number may have several sources.
	filesystem, source string
	// path is relative to the filesystem's root.
	path string
}

func (m mount) has(option string) bool { return slices.Contains(m.options, option) }

// parseMounts parses the table; later mounts cover earlier ones. The kernel escapes spaces, but not Unicode's other spaces, which tenants
// can use in names of folders.
func parseMounts(table string) (found []mount) {
	for line := range strings.SplitSeq(table, "\n") {
		fields := strings.Split(line, " ")
		dash := slices.Index(fields, "-")
		if dash < 6 || len(fields) < dash+3 {
			continue
		}
		m := mount{
			target: unescape(fields[4]), source: unescape(fields[dash+2]), kind: fields[dash+1],
			options: strings.Split(fields[5], ","),
		}
		m.location = location{filesystem: fields[2], source: m.source, path: unescape(fields[3])}
		if m.kind == "nfs" || m.kind == "nfs4" {
			// For this filesystem the kernel writes the whole path into the source of each mount, also of a bind mount of a part, and / as
			// the root.
			m.location = location{filesystem: fields[2], path: filepath.Join(m.source, unescape(fields[3]))}
		}
		found = append(found, m)
	}
	return found
}

// refusesRoot reports whether the filesystem may refuse the host's root to open a regular file, as a server (root_squash) or a FUSE
// program can. No other filesystem does.
func (m mount) refusesRoot() bool {
	return slices.Contains([]string{"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs", "afs", "lustre", "gpfs", "beegfs", "pvfs2"},
		m.kind) ||
		strings.HasPrefix(m.kind, "fuse")
}

// mountsAt are the mounts at a target, top first.
func mountsAt(mounts []mount, target string) (found []mount) {
	for _, m := range slices.Backward(mounts) {
		if m.target == target {
			found = append(found, m)
		}
	}
	return found
}

// mountOf is the mount that a path is on if no part of it is a symbolic link, and the rest of the path below its target.
func mountOf(mounts []mount, path string) (found mount, rest string) {
	for _, m := range mounts {
		below, err := filepath.Rel(m.target, path)
		if err == nil && filepath.IsLocal(below) && len(m.target) >= len(found.target) {
			found, rest = m, below
		}
	}
	return found, rest
}

// locate is the location of a path of which no part is a symbolic link.
func locate(mounts []mount, path string) location {
	m, rest := mountOf(mounts, path)
	m.path = filepath.Join(m.path, rest)
	return m.location
}

// bindPool returns the definition of a pool of the type fs, which libvirt mounts with these options.
func bindPool(name, source, target string, options ...string) *libvirtxml.StoragePool {
	pool := &libvirtxml.StoragePool{
		Type: "fs", Name: name,
		Source: &libvirtxml.StoragePoolSource{
			Device: []libvirtxml.StoragePoolSourceDevice{{Path: source}}, Format: &libvirtxml.StoragePoolSourceFormat{Type: "auto"},
		},
		Target: &libvirtxml.StoragePoolTarget{Path: target},
	}
	if len(options) > 0 {
		pool.FSCommandline = &libvirtxml.StoragePoolFSCommandline{}
		for _, option := range options {
			pool.FSCommandline.Options = append(pool.FSCommandline.Options, libvirtxml.StoragePoolFSCommandlineOption{Name: option})
		}
	}
	return pool
}

// mounts are those in libvirt's mount namespace. name is the name of the temporary domain with which they are read.
func mounts(l *libvirt.Libvirt, name string) ([]mount, error) {
	return readMounts(func() ([]byte, error) { return readHostFile(l, name, mountTable, maxHostFile) })
}

// readMounts parses what read reads of the table, which may change between two calls: one that has become longer then ends within a line.
func readMounts(read func() ([]byte, error)) ([]mount, error) {
	for range settleTries {
		table, err := read()
		if err == nil && len(table) == maxHostFile {
			err = fmt.Errorf("it has %d bytes or more", maxHostFile)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUnseen, err)
		}
		if bytes.HasSuffix(table, []byte("\n")) {
			return parseMounts(string(table)), nil
		}
	}
	return nil, fmt.Errorf("%w: it changed %d times while it was read", errUnseen, settleTries)
}

// unmountTries is how often unmount tries: another inspection releases the source of its pool within a moment.
const unmountTries = 10

// unmountSuffix is the suffix of the names of the pools that unmount.
const unmountSuffix = "-unmount"

// unmount removes all mounts at a target, by the mount table of now.
func (h *Host) unmount(l *libvirt.Libvirt, name, target string) (failed error) {
	for n := range unmountTries {
		seen, err := mounts(l, name)
		if at := mountsAt(seen, target); err != nil || len(at) == 0 {
			return err
		}
		// Another pool may have the device as its source, which libvirt compares by name. udev has further links to each device.
		failed = h.unmountSeen(l, name, seen, target, n%2 == 1)
		if failed != nil {
			endUnmounts(l)
			<-time.After(busyPause)
		}
	}
	return failed
}

// unmountSeen removes the mounts that a table has at a target. libvirt does not unmount a bind mount when its pool ends, because it
// searches the mount table for the pool's source, and the table has the filesystem's device. So a pool with that device as its source is
// created, counts as mounted, and ends. If the target is not a folder, the pool fails to start, which also unmounts: an error does not mean
// that it is mounted.
func (h *Host) unmountSeen(l *libvirt.Libvirt, name string, seen []mount, target string, byNumber bool) (failed error) {
	h.unmounting.Lock() // libvirt refuses two pools with the same source
	defer h.unmounting.Unlock()
	for _, m := range mountsAt(seen, target) {
		source := m.source
		if byNumber && strings.HasPrefix(source, "/dev/") {
			source = "/dev/block/" + m.filesystem
		}
		xml, err := bindPool(name+unmountSuffix, source, target).Marshal()
		if err != nil {
			return err
		}
		p, err := l.StoragePoolCreateXML(xml, 0)
		if err == nil {
			err = endPassing(l, p)
		}
		failed = cmp.Or(failed, err)
	}
	return failed
}

// endPassing ends a pool that another process may end at the same time.
func endPassing(l *libvirt.Libvirt, p libvirt.StoragePool) error {
	err := l.StoragePoolDestroy(p)
	if isCode(err, libvirt.ErrNoStoragePool) {
		return nil
	}
	return err
}

// endUnmounts ends the pools of killed or busy unmounts, whose sources no other pool can have while they exist. Another inspection that
// unmounts now would end its pool next.
func endUnmounts(l *libvirt.Libvirt) {
	pools, _, _ := l.ConnectListAllStoragePools(1, libvirt.ConnectListStoragePoolsActive)
	for _, p := range pools {
		if isPassing(p) && strings.HasSuffix(p.Name, unmountSuffix) {
			_ = endPassing(l, p)
		}
	}
}

// unescape decodes the kernel's octal escapes as far as libvirt does, which compares the result.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
