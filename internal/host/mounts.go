package host

import (
	"bytes"
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

// parseMounts parses the table; later mounts cover earlier ones. The kernel escapes spaces, but not Unicode's other spaces, which tenants can
// use in names of folders.
func parseMounts(table string) (found []mount) {
	for line := range strings.SplitSeq(table, "\n") {
		fields := strings.Split(line, " ")
		dash := slices.Index(fields, "-")
		if dash < 6 || len(fields) < dash+3 {
			continue
		}
		m := mount{target: unescape(fields[4]), source: unescape(fields[dash+2]), kind: fields[dash+1], options: strings.Split(fields[5], ",")}
		m.location = location{filesystem: fields[2], source: m.source, path: unescape(fields[3])}
		if m.kind == "nfs" || m.kind == "nfs4" {
			// For this filesystem the kernel writes the whole path into the source of each mount, also of a bind mount of a part, and / as the root.
			m.location = location{filesystem: fields[2], path: filepath.Join(m.source, unescape(fields[3]))}
		}
		found = append(found, m)
	}
	return found
}

// refusesRoot reports whether the filesystem may refuse the host's root to open a regular file, as a server (root_squash) or a FUSE
// program can. No other filesystem does.
func (m mount) refusesRoot() bool {
	return slices.Contains([]string{"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs", "afs", "lustre", "gpfs", "beegfs", "pvfs2"}, m.kind) ||
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

// locate is the location of a path of which no part is a symbolic link.
func locate(mounts []mount, path string) (found location) {
	longest := -1
	for _, m := range mounts {
		below, err := filepath.Rel(m.target, path)
		if err == nil && filepath.IsLocal(below) && len(m.target) >= longest {
			longest = len(m.target)
			found = location{m.filesystem, m.location.source, filepath.Join(m.path, below)}
		}
	}
	return found
}

// bindPool returns the definition of a pool of the type fs, which libvirt mounts with these options.
func bindPool(name, uuid, source, target string, options ...string) *libvirtxml.StoragePool {
	pool := &libvirtxml.StoragePool{
		Type: "fs", Name: name, UUID: uuid,
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
func mounts(l *libvirt.Libvirt, name string) (found []mount, err error) {
	err = withDisk(l, name, mountTable, func(peek peek) (err error) {
		found, err = readMounts(peek)
		return err
	})
	return found, err
}

// readMounts reads the table, which may change between two calls: one that has become longer then ends within a line.
func readMounts(peek peek) ([]mount, error) {
	for range settleTries {
		table, err := readUpTo(maxHostFile, peek)
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

// sourceTries is how often a pool is defined with a source that another pool has: one of virtclaim's releases it within a moment.
const sourceTries = 10

// unmount removes all mounts at a target. libvirt does not unmount a bind mount when its pool ends, because it searches the mount table for the
// pool's source, and the table has the filesystem's device. So a pool with that device as its source is created, counts as mounted, and ends.
func (h *Host) unmount(l *libvirt.Libvirt, name, target string) error {
	h.unmounting.Lock() // libvirt refuses two pools with the same source
	defer h.unmounting.Unlock()
	seen, err := mounts(l, name)
	for _, m := range mountsAt(seen, target) {
		err = unmount(l, name, m, m.source)
		for n := 0; err != nil && n < sourceTries; n++ { // another apply may be unmounting something of the same filesystem
			<-time.After(busyPause)
			err = unmount(l, name, m, m.source)
		}
		if err != nil && endUnmounts(l, m.source) {
			err = unmount(l, name, m, m.source)
		}
		if err != nil && strings.HasPrefix(m.source, "/dev/") {
			// Another pool has that source, which libvirt compares by name. udev has further links to each device.
			err = unmount(l, name, m, "/dev/block/"+m.filesystem)
		}
		if err != nil {
			break
		}
	}
	return err
}

// unmountSuffix is the suffix of the names of the pools of unmount.
const unmountSuffix = "-unmount"

// endPassing ends a pool that another process may end at the same time.
func endPassing(l *libvirt.Libvirt, p libvirt.StoragePool) error {
	err := l.StoragePoolDestroy(p)
	if isCode(err, libvirt.ErrNoStoragePool) {
		return nil
	}
	return err
}

// endUnmounts ends the pools of interrupted or busy unmounts with a source, which no other pool can have while they exist. It reports whether
// there was one.
func endUnmounts(l *libvirt.Libvirt, source string) (ended bool) {
	pools, _, err := l.ConnectListAllStoragePools(1, libvirt.ConnectListStoragePoolsActive)
	if err != nil {
		return false
	}
	for _, p := range pools {
		if !isPassing(p) || !strings.HasSuffix(p.Name, unmountSuffix) {
			continue
		}
		text, err := l.StoragePoolGetXMLDesc(p, 0)
		var pool libvirtxml.StoragePool
		if err == nil {
			err = pool.Unmarshal(text)
		}
		if err == nil && pool.Source != nil && slices.ContainsFunc(pool.Source.Device, func(d libvirtxml.StoragePoolSourceDevice) bool { return d.Path == source }) {
			ended = endPassing(l, p) == nil || ended
		}
	}
	return ended
}

// unmountSeen removes the mounts that a table has at a target. libvirt can't delete what is mounted nevertheless.
func (h *Host) unmountSeen(l *libvirt.Libvirt, name string, seen []mount, target string) {
	h.unmounting.Lock()
	defer h.unmounting.Unlock()
	for _, m := range mountsAt(seen, target) {
		_ = createUnmount(l, name, m, m.source)
	}
}

// createUnmount removes the top mount at a target, by its source. If the target is not a folder, the pool fails to start, which also unmounts.
func createUnmount(l *libvirt.Libvirt, name string, m mount, source string) error {
	xml, err := bindPool(name+unmountSuffix, "", source, m.target).Marshal()
	if err != nil {
		return err
	}
	p, err := l.StoragePoolCreateXML(xml, 0)
	if err == nil {
		err = endPassing(l, p)
	}
	return err
}

// unmount is createUnmount, and returns an error only if the mount is left.
func unmount(l *libvirt.Libvirt, name string, m mount, source string) error {
	failed := createUnmount(l, name, m, source)
	if failed == nil {
		return nil
	}
	// A pool of an interrupted or busy unmount is ended first, because it has the same name.
	if p, err := l.StoragePoolLookupByName(name + unmountSuffix); err == nil {
		if err := endPassing(l, p); err != nil {
			return err
		}
	}
	left, err := mounts(l, name)
	if err == nil && slices.ContainsFunc(mountsAt(left, m.target), func(other mount) bool { return other.location == m.location }) {
		return failed
	}
	return err
}

// unescape decodes the kernel's octal escapes as far as libvirt does, which compares the result.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
