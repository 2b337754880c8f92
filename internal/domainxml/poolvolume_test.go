package domainxml

import (
	"strings"
	"testing"
)

// Where a disk is becomes a path, what libvirtxml does not know stays, and a volume that has no path stays a volume.
func TestWithPaths_KeepsTheRest(t *testing.T) {
	const text = `<domain type='qemu'><name>theirs</name><lunar phase='full'/><devices>
		<disk type='volume' device='disk' spin='up'><source pool='ssd' volume='a'/><target dev='vda' bus='virtio'/></disk>
		<disk type='volume' device='disk'><source pool='ceph' volume='b'/><target dev='vdb' bus='virtio'/></disk></devices></domain>`
	got, err := WithPaths(text, func(pool, name string) (kind, at string, err error) {
		if pool == "ceph" {
			return "", "", ErrNoPath
		}
		return "file", "/" + pool + "/" + name, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`<lunar phase='full'/>`, `spin="up"`, `<source file="/ssd/a">`, `<source pool="ceph" volume="b">`} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is missing in:\n%s", part, got)
		}
	}
}
