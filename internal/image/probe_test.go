package image_test

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// qcow2 returns the header of a valid image after change.
func qcow2(change func(head []byte)) []byte {
	head := make([]byte, image.HeadSize)
	copy(head, "QFI\xfb")
	binary.BigEndian.PutUint32(head[4:], 3)
	binary.BigEndian.PutUint32(head[20:], 16)
	binary.BigEndian.PutUint64(head[24:], 1<<30)
	binary.BigEndian.PutUint32(head[36:], 2)
	binary.BigEndian.PutUint64(head[40:], 3<<16)
	binary.BigEndian.PutUint64(head[48:], 1<<16)
	binary.BigEndian.PutUint32(head[56:], 1)
	binary.BigEndian.PutUint32(head[100:], 104)
	if change != nil {
		change(head)
	}
	return head
}

func word(at int, value uint32) func([]byte) {
	return func(head []byte) { binary.BigEndian.PutUint32(head[at:], value) }
}

func long(at int, value uint64) func([]byte) {
	return func(head []byte) { binary.BigEndian.PutUint64(head[at:], value) }
}

// extension writes an empty header extension at the end of the header.
func extension(kind uint32) func([]byte) { return word(104, kind) }

func TestProbe(t *testing.T) {
	iso := make([]byte, image.HeadSize)
	copy(iso[32769:], "CD001")
	for name, c := range map[string]struct {
		head   []byte
		format string
		size   int64
		refuse string
	}{
		"a boot sector":        {append(make([]byte, 510), 0x55, 0xaa), "raw", 0, ""},
		"an ISO image":         {iso, "raw", 0, ""},
		"a guest's encryption": {[]byte("LUKS\xba\xbe"), "raw", 0, ""},
		"qcow2":                {qcow2(nil), "qcow2", 1 << 30, ""},
		"qcow2 of version 2":   {qcow2(word(4, 2))[:80], "qcow2", 1 << 30, ""},
		"qcow2 with names of features": {qcow2(func(head []byte) {
			extension(0x6803f857)(head)
			word(108, 48)(head)
		}), "qcow2", 1 << 30, ""},

		"a backing file":               {qcow2(long(8, 512)), "", 0, "names a backing file"},
		"the format of a backing file": {qcow2(extension(0xe2792aca)), "", 0, "names the format of a backing file"},
		"a data file":                  {qcow2(long(72, 4)), "", 0, "keeps its data in another file"},
		"the name of a data file":      {qcow2(extension(0x44415441)), "", 0, "names another file for its data"},
		"AES":                          {qcow2(word(32, 1)), "", 0, "is encrypted"},
		"LUKS":                         {qcow2(word(32, 2)), "", 0, "is encrypted"},
		"a LUKS header":                {qcow2(extension(0x0537be77)), "", 0, "is encrypted"},
		"an absurd size":               {qcow2(long(24, 1<<62)), "", 0, "claims to have 4611686018427387904 bytes"},
		"a negative size":              {qcow2(long(24, 1<<63)), "", 0, "claims to have"},
		"no size":                      {qcow2(long(24, 0)), "", 0, "claims to have 0 bytes"},
		"tiny clusters":                {qcow2(word(20, 3)), "", 0, "clusters of 2^3"},
		"huge clusters":                {qcow2(word(20, 60)), "", 0, "clusters of 2^60"},
		"an unknown version":           {qcow2(word(4, 4)), "", 0, "unknown version 4"},
		"version 1":                    {qcow2(word(4, 1)), "", 0, "unknown version 1"},
		"corrupt":                      {qcow2(long(72, 2)), "", 0, "marked as corrupt"},
		"unknown features":             {qcow2(long(72, 1<<40)), "", 0, "unknown features (0x10000000000)"},
		"a header without an end":      {qcow2(word(100, 1<<30)), "", 0, "a header of 1073741824 bytes"},
		"extensions without an end": {qcow2(func(head []byte) {
			extension(0x6803f857)(head)
			word(108, 1<<31)(head)
		}), "", 0, "whose header does not end"},
		"a header beyond the head":      {qcow2(word(100, 4096))[:1000], "", 0, "a header of 4096 bytes"},
		"a short header":                {qcow2(word(100, 72)), "", 0, "a header of 72 bytes"},
		"an L1 table without an end":    {qcow2(word(36, 1<<30)), "", 0, "a table of 8589934592 bytes for its clusters"},
		"an L1 table that is too small": {qcow2(word(36, 1)), "", 0, "which is not enough"},
		"an L1 table beyond":            {qcow2(long(40, 1<<60)), "", 0, "its table of clusters at the offset"},
		"an L1 table in the header":     {qcow2(long(40, 0)), "", 0, "its table of clusters at the offset 0"},
		"an L1 table between":           {qcow2(long(40, 3<<16+512)), "", 0, "its table of clusters at the offset 197120"},
		"refcounts without an end":      {qcow2(word(56, 1<<20)), "", 0, "a table of 1048576 clusters"},
		"refcounts beyond":              {qcow2(long(48, 1<<63)), "", 0, "its table of reference counts at the offset"},
		"refcounts of many bits":        {qcow2(word(96, 7)), "", 0, "reference counts of 2^7 bits"},
		"many snapshots":                {qcow2(word(60, 1<<20)), "", 0, "with 1048576 snapshots"},
		"snapshots beyond":              {qcow2(func(head []byte) { word(60, 1)(head); long(64, 1<<63)(head) }), "", 0, "its table of snapshots"},
		"an unknown compression":        {qcow2(func(head []byte) { word(100, 112)(head); head[104] = 9 }), "", 0, "unknown compression 9"},
		"small parts of clusters":       {qcow2(func(head []byte) { long(72, 16)(head); word(20, 9)(head) }), "", 0, "too small"},
		"nothing":                       {nil, "", 0, "it is empty"},
		"QED":                           {[]byte("QED\x00"), "", 0, "in the format QED"},
		"Bochs":                         {[]byte("Bochs Virtual HD Image"), "", 0, "in the format Bochs"},
		"a torn head":                   {qcow2(nil)[:40], "", 0, "of 40 bytes only"},
		"VMDK":                          {[]byte("KDMV and more"), "", 0, "in the format VMDK. If you trust"},
		"a VMDK that names files":       {[]byte("# Disk DescriptorFile\nRW 1 FLAT \"/etc/shadow\" 0"), "", 0, "in the format VMDK"},
		"a VMDK without its first line": {[]byte("# no name\n\n  \r\nversion=1\nRW 1 FLAT \"/etc/shadow\" 0"), "", 0, "in the format VMDK"},
		"COW":                           {[]byte("OOOM\x00\x00\x00\x02/etc/shadow"), "", 0, "in the format COW"},
		"VHDX":                          {[]byte("vhdxfile"), "", 0, "in the format VHDX"},
		"VHD":                           {[]byte("conectix"), "", 0, "in the format VHD"},
		"VDI":                           {append(make([]byte, 64), 0x7f, 0x10, 0xda, 0xbe), "", 0, "in the format VDI"},
	} {
		t.Run(name, func(t *testing.T) {
			is, err := image.Probe(c.head)
			if c.refuse == "" && (err != nil || is != (image.Header{Format: c.format, Capacity: c.size})) {
				t.Errorf("got %+v, %v", is, err)
			}
			if c.refuse != "" && (!errors.Is(err, image.ErrUntrusted) || !strings.Contains(err.Error(), c.refuse)) {
				t.Errorf("got %+v, %v; want %q", is, err, c.refuse)
			}
		})
	}
}

// Images of QEMU are recognized.
func TestProbe_ImagesOfQEMU(t *testing.T) {
	for name, options := range map[string]string{
		"compat 0.10": "compat=0.10", "compat 1.1": "compat=1.1", "zstd": "compression_type=zstd", "extended L2": "extended_l2=on",
		"large clusters": "cluster_size=2M", "small clusters": "cluster_size=512",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "image")
			if out, err := exec.CommandContext(t.Context(), "qemu-img", "create", "-f", "qcow2", "-o", options, path, "100M").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			head, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if is, err := image.Probe(head[:min(len(head), image.HeadSize)]); err != nil || is.Format != "qcow2" || is.Capacity != 100<<20 {
				t.Errorf("got %+v, %v", is, err)
			}
		})
	}
}

func FuzzProbe(f *testing.F) {
	f.Add(qcow2(nil))
	f.Add(qcow2(extension(0x6803f857))[:200])
	f.Fuzz(func(t *testing.T, head []byte) {
		is, err := image.Probe(head)
		if err == nil && is.Format != "raw" && (is.Capacity <= 0 || is.Capacity > image.MaxCapacity) {
			t.Errorf("it took %+v", is)
		}
	})
}
