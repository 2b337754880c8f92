package host

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mountsAt gives the mounts of exactly that target, the top one first, with what mount(8) calls their devices.
func TestMountsAt(t *testing.T) {
	const table = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 22 254:0 /claims/a /run/x rw,nosuid shared:3 master:1 - ext4 /dev/vda rw
32 22 0:50 / /run/x rw,nosuid,nosymfollow - nfs4 server:/with\040space rw
33 22 0:51 / /run/xy rw - tmpfs none rw
33 22 0:51 / /run/x rw
`
	want := []mount{
		{device: "server:/with space", number: "0:50", options: []string{"rw", "nosuid", "nosymfollow"}},
		{device: "/dev/vda", number: "254:0", options: []string{"rw", "nosuid"}},
	}
	found := mountsAt(table, "/run/x")
	if diff := cmp.Diff(want, found, cmp.AllowUnexported(mount{})); diff != "" {
		t.Error(diff)
	}
	if len(found) != 2 || !found[0].has(noFollow) || found[1].has(noFollow) {
		t.Error("the option is not told from others")
	}
}

// readWhole reads a file of any length by calls that fail when they ask for more than there is.
func TestReadWhole(t *testing.T) {
	short := errors.New("there is less")
	for _, length := range []int{1, 2295, 4096, maxHostFile - 1} {
		file := make([]byte, length)
		content, err := readWhole(func(size int) ([]byte, error) {
			if size > length {
				return nil, short
			}
			return file[:size], nil
		})
		if err != nil || len(content) != length {
			t.Errorf("%d bytes of %d: %v", len(content), length, err)
		}
	}
	if _, err := readWhole(func(size int) ([]byte, error) { return make([]byte, size), nil }); err == nil {
		t.Error("a file that can't be read whole is taken for whole")
	}
	if _, err := readWhole(func(int) ([]byte, error) { return nil, short }); !errors.Is(err, short) {
		t.Error("nothing can be read:", err)
	}
}
