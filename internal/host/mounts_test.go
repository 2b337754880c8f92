package host

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/go-cmp/cmp"
)

// mountsAt returns the mounts of exactly that target, the top one first, with their devices as mount(8) lists them.
func TestMountsAt(t *testing.T) {
	const table = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 22 254:0 /claims/a /run/x rw,nosuid shared:3 master:1 - ext4 /dev/vda rw
32 22 0:50 / /run/x rw,nosuid,nosymfollow - nfs4 server:/with\040space rw
33 22 0:51 / /run/xy rw - tmpfs none rw
33 22 0:51 / /run/x rw
`
	want := []mount{
		{target: "/run/x", source: "server:/with space", kind: "nfs4", options: []string{"rw", "nosuid", "nosymfollow"}, location: location{"0:50", "", "server:/with space"}},
		{target: "/run/x", source: "/dev/vda", kind: "ext4", options: []string{"rw", "nosuid"}, location: location{"254:0", "/dev/vda", "/claims/a"}},
	}
	found := mountsAt(parseMounts(table), "/run/x")
	if diff := cmp.Diff(want, found, cmp.AllowUnexported(mount{}, location{})); diff != "" {
		t.Error(diff)
	}
	if len(found) != 2 || !found[0].has(noFollow) || found[1].has(noFollow) {
		t.Error("the option is not told from others")
	}
}

// locate follows the mounts to a path, the last one if several are at one target, and none whose name is only a prefix.
func TestLocate(t *testing.T) {
	mounts := parseMounts(`22 1 254:0 / / rw - ext4 /dev/vda rw
23 22 254:0 /volumes/one /claims/one rw - ext4 /dev/vda rw
24 22 0:50 /exports /claims/two rw - nfs4 server:/ rw
25 24 0:51 / /claims/two rw - tmpfs none rw
`)
	for path, want := range map[string]location{
		"/disk.img":                {"254:0", "/dev/vda", "/disk.img"},
		"/claims/one/sub/disk.img": {"254:0", "/dev/vda", "/volumes/one/sub/disk.img"},
		"/claims/two/disk.img":     {"0:51", "none", "/disk.img"},
		"/claims/two-more/x":       {"254:0", "/dev/vda", "/claims/two-more/x"},
	} {
		if got := locate(mounts, path); got != want {
			t.Errorf("%s is at %v, want %v", path, got, want)
		}
	}
}

// The kernel shows / as the root of all mounts of an NFS server, and the path in their source, also for a single file that is
// bind-mounted.
func TestLocate_NFS(t *testing.T) {
	mounts := parseMounts(`93 30 0:47 / /mnt/t1 rw - nfs4 10.0.0.1:/export/t1 rw
97 30 0:47 / /mnt/t2 rw - nfs4 10.0.0.1:/export/t2 rw
98 30 0:48 / /mnt/all rw - nfs 10.0.0.2:/ rw
120 30 0:47 / /run/bound rw - nfs4 10.0.0.1:/export/t2/disk.img rw
121 30 0:48 / /run/root rw - nfs 10.0.0.2:/t1/disk.img rw
`)
	bound := mountsAt(mounts, "/run/bound")[0].location
	if locate(mounts, "/mnt/t1/disk.img") == bound || locate(mounts, "/mnt/t2/disk.img") != bound {
		t.Errorf("%v is at %v and %v", bound, locate(mounts, "/mnt/t1/disk.img"), locate(mounts, "/mnt/t2/disk.img"))
	}
	if root := mountsAt(mounts, "/run/root")[0].location; locate(mounts, "/mnt/all/t1/disk.img") != root {
		t.Errorf("%v is at %v", root, locate(mounts, "/mnt/all/t1/disk.img"))
	}
}

// A folder's name can't forge fields of the table, although the kernel does not escape Unicode spaces.
func TestParseMounts_SpacesInNames(t *testing.T) {
	for _, space := range []string{"\u00a0", "\u0085", "\u2003", "\u3000", "\v", "\f", "\r"} {
		folder := strings.ReplaceAll("/tenant/x_/run/x_rw_-_ext4_/dev/loop0_rw", "_", space)
		found := parseMounts("22 1 254:0 " + folder + " /pods/1 rw shared:1 - ext4 /dev/vda rw\n")
		want := []mount{{target: "/pods/1", source: "/dev/vda", kind: "ext4", options: []string{"rw"}, location: location{"254:0", "/dev/vda", folder}}}
		if diff := cmp.Diff(want, found, cmp.AllowUnexported(mount{}, location{})); diff != "" {
			t.Errorf("%q: %s", space, diff)
		}
	}
}

// short is libvirt's error of a peek beyond the end of a file.
func short(text string, length int) error {
	return libvirt.Error{Code: uint32(libvirt.ErrInvalidArg), Message: fmt.Sprintf(text, length)}
}

// readUpTo reads a file of any length by two calls: the first one fails, if it requests more than the file has, with the length.
func TestReadUpTo(t *testing.T) {
	for _, text := range []string{
		"invalid argument: 'vda' starting from 0 has only %d bytes available",
		"Ungültiges Argument: von 'vda' sind nur %d Bytes ab 0 verfügbar",
	} {
		for _, length := range []int{1, 2295, 4096, 65535, 65536, 100000} {
			file, calls := make([]byte, length), 0
			content, err := readUpTo(65536, func(size int) ([]byte, error) {
				if calls++; size > length {
					return nil, short(text, length)
				}
				return file[:size], nil
			})
			if err != nil || len(content) != min(length, 65536) || calls > 2 {
				t.Errorf("%d bytes of %d by %d calls: %v", len(content), length, calls, err)
			}
		}
	}
	for _, failed := range []error{
		errors.New("there are only 5 bytes"),
		short("'vda' starting from 0 has only %d bytes available", 0),
		short("'vda' is larger than %d bytes", 65536),
		short("no disk vda%.0d", 0),
		libvirt.Error{Code: uint32(libvirt.ErrSystemError), Message: "failed after 5 bytes"},
	} {
		calls := 0
		content, err := readUpTo(65536, func(int) ([]byte, error) { calls++; return nil, failed })
		if !errors.Is(err, failed) || calls != 1 {
			t.Errorf("%d bytes by %d calls: %v", len(content), calls, err)
		}
	}
}

// A table that changes between two calls is read again: no line is cut off.
func TestReadMounts_Changing(t *testing.T) {
	const line = "22 1 0:1 / /pods/1 rw shared:1 - ext4 source rw\n"
	lengths, calls := []int{5, 3, 4, 7, 6, 6}, 0 // lines at each call
	peeks := func(size int) ([]byte, error) {
		length := lengths[min(calls, len(lengths)-1)]
		table := []byte(strings.Repeat(line, length-1) + strings.Replace(line, "22", "1000", 1))
		if calls++; size > len(table) {
			return nil, short("'vda' starting from 0 has only %d bytes available", len(table))
		}
		return table[:size], nil
	}
	found, err := readMounts(func() ([]byte, error) { return readUpTo(maxHostFile, peeks) })
	if err != nil || len(found) != 6 && len(found) != 4 {
		t.Errorf("%d mounts by %d calls, %v", len(found), calls, err)
	}
	if _, err := readMounts(func() ([]byte, error) { return make([]byte, maxHostFile), nil }); !errors.Is(err, errUnseen) {
		t.Errorf("a table without an end: %v", err)
	}
	if _, err := readMounts(func() ([]byte, error) { return []byte(line[:9]), nil }); !errors.Is(err, errUnseen) {
		t.Errorf("a table that always changes: %v", err)
	}
}

// Only a server, or a FUSE program, can refuse the host's root to open a regular file.
func TestMount_RefusesRoot(t *testing.T) {
	for kind, want := range map[string]bool{"nfs4": true, "cifs": true, "fuse.glusterfs": true, "ceph": true, "ext4": false, "xfs": false, "overlay": false, "tmpfs": false} {
		found := parseMounts("22 1 0:1 / /pods/1 rw shared:1 - " + kind + " source rw\n")
		if got := found[0].refusesRoot(); got != want {
			t.Errorf("%s: %v", kind, got)
		}
	}
}
