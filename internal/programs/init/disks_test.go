//go:build linux

package main

import (
	"errors"
	"maps"
	"testing"
	"testing/fstest"
)

func TestDisksBySerial(t *testing.T) {
	got := disksBySerial(fstest.MapFS{
		"vda/serial":          {Data: []byte("root\n")},
		"vdb/serial":          {Data: nil},
		"vdc/size":            {Data: []byte("8")},
		"sda/device/vpd_pg80": {Data: []byte("\x00\x80\x00\x06data  ")},
		"sdb/device/vpd_pg80": {Data: []byte("\x00")},
		"loop0/serial":        {Data: []byte("loop")},
	})
	if want := map[string]string{"root": "/dev/vda", "data": "/dev/sda"}; !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestIsSerial(t *testing.T) {
	for _, try := range []struct {
		found, wanted string
		same          bool
	}{
		{"root", "root", true},
		{"root", "root2", false},
		{"root2", "root", false},
		{"12345678901234567890", "123456789012345678901", true},
		{"", "root", false},
	} {
		if got := isSerial(try.found, try.wanted); got != try.same {
			t.Errorf("%q, %q: %v", try.found, try.wanted, got)
		}
	}
}

func TestProbeFileSystem(t *testing.T) {
	head := func(parts map[int]string) []byte {
		disk := make([]byte, probeSize)
		for offset, part := range parts {
			copy(disk[offset:], part)
		}
		return disk
	}
	for want, disk := range map[string][]byte{
		"ext4": head(map[int]string{1080: "\x53\xef"}),
		"xfs":  head(map[int]string{0: "XFSB"}),
		"vfat": head(map[int]string{82: "FAT32   ", 510: "\x55\xaa"}),
	} {
		if got, err := probeFileSystem(disk); got != want || err != nil {
			t.Errorf("%s is %s: %v", want, got, err)
		}
	}
	for _, disk := range [][]byte{nil, head(nil), head(map[int]string{510: "\x55\xaa"}), []byte("XFS")} {
		if got, err := probeFileSystem(disk); !errors.Is(err, errNoFileSystem) {
			t.Errorf("%q: %v", got, err)
		}
	}
}
