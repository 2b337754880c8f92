package host

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// mountTable is the kernel's table of the mounts that libvirt sees; proc(5) has its form.
const mountTable = "/proc/self/mountinfo"

// mount is a line of that table.
type mount struct {
	// target is where it is mounted; source is what was mounted, as mount(8) lists it.
	target, source string
	// kind is the type of its filesystem.
	kind    string
	options []string
	location
}

// location is where something really is: a path within a filesystem, without symbolic links.
type location struct {
	// filesystem is the number of its device; source is that of the mount, since filesystems of one number may have several.
	filesystem, source string
	// path starts at the filesystem's own root.
	path string
}

func (m mount) has(option string) bool { return slices.Contains(m.options, option) }

// parseMounts reads the table; later mounts cover earlier ones. The kernel escapes spaces, but not what else Unicode counts as one:
// tenants choose the names of folders.
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
			// The kernel writes the whole path into the source of each mount, also of a bind of a part, and gives / for its root.
			m.location = location{filesystem: fields[2], path: filepath.Join(m.source, unescape(fields[3]))}
		}
		found = append(found, m)
	}
	return found
}

// refusesRoot reports whether the filesystem may refuse the host's root to open a regular file, as a server does (root_squash) or a program. No
// other filesystem does.
func (m mount) refusesRoot() bool {
	return slices.Contains([]string{"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs", "afs", "lustre", "gpfs", "beegfs", "pvfs2"}, m.kind) ||
		strings.HasPrefix(m.kind, "fuse")
}

// mountsAt are the mounts at a target, the top one first.
func mountsAt(mounts []mount, target string) (found []mount) {
	for _, m := range slices.Backward(mounts) {
		if m.target == target {
			found = append(found, m)
		}
	}
	return found
}

// locate is where a path leads if no part of it is a symbolic link.
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

// bindPool is the definition of a pool of the type fs, which libvirt mounts with these options.
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

// mounts are those that libvirt sees. The name is for what it takes to read them.
func mounts(l *libvirt.Libvirt, name string) ([]mount, error) {
	table, err := readHostFile(l, name, mountTable, maxHostFile)
	if err == nil && len(table) == maxHostFile {
		err = fmt.Errorf("it has %d bytes or more", maxHostFile)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnseen, err)
	}
	return parseMounts(string(table)), nil
}

// sourceTries is how often a pool is to get a source that another one has, which gives it up within a moment if it is one of ours.
const sourceTries = 10

// unmount ends all mounts at a target. libvirt leaves a bind mounted when its pool ends: it looks for the pool's source in the
// table of mounts, which has the device of the filesystem. So a pool gets that as its source, counts as mounted, and ends.
func (h *Host) unmount(l *libvirt.Libvirt, name, target string) error {
	h.unmounting.Lock() // no two pools of a host have the same source
	defer h.unmounting.Unlock()
	seen, err := mounts(l, name)
	for _, m := range mountsAt(seen, target) {
		err = unmount(l, name, m, m.source)
		for n := 0; err != nil && n < sourceTries; n++ { // another apply may be about to unmount something of the same filesystem
			<-time.After(busyPause)
			err = unmount(l, name, m, m.source)
		}
		if err != nil && endUnmounts(l, m.source) {
			err = unmount(l, name, m, m.source)
		}
		if err != nil && strings.HasPrefix(m.source, "/dev/") {
			// Somebody else has a pool of that source, which libvirt tells by its name. udev has a link to each device.
			err = unmount(l, name, m, "/dev/block/"+m.filesystem)
		}
		if err != nil {
			break
		}
	}
	return err
}

// unmountSuffix ends the names of the pools that unmount.
const unmountSuffix = "-unmount"

// endPassing ends a pool that others may end, too.
func endPassing(l *libvirt.Libvirt, p libvirt.StoragePool) error {
	err := l.StoragePoolDestroy(p)
	if isCode(err, libvirt.ErrNoStoragePool) {
		return nil
	}
	return err
}

// endUnmounts ends the pools of interrupted or busy unmounts that have a source, which no other pool can have meanwhile, and reports whether there
// was one.
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

// unmount ends the top mount at a target, by a source. Where that is no folder the pool can't start, which unmounts as well.
func unmount(l *libvirt.Libvirt, name string, m mount, source string) error {
	xml, err := bindPool(name+unmountSuffix, "", source, m.target).Marshal()
	if err != nil {
		return err
	}
	p, failed := l.StoragePoolCreateXML(xml, 0)
	if failed == nil {
		return endPassing(l, p)
	}
	// A pool that an interrupted or busy unmount has left is ended first, because its name is taken.
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

// unescape undoes the kernel's octal escapes as far as libvirt does: it compares the rest as it is.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
