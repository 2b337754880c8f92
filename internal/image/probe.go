// Package image is bytes: where the content of a disk comes from, and what it may be. It knows neither libvirt, Terraform nor
// Kubernetes.
package image

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Header is what the beginning of an image tells of it.
type Header struct {
	// Format is QEMU's: raw or qcow2. All that has no head of its own is raw.
	Format string
	// Capacity is what a guest sees, in bytes; 0 of a raw image, whose length it is.
	Capacity int64
}

// HeadSize is how many bytes of an image Probe wants, or all of a shorter one. The head of a qcow2 image is one cluster, of
// at most 2 MiB, of which only the beginning is in use.
const HeadSize = 64 << 10

// MaxCapacity is how large a disk may claim to be, in bytes: what is larger is a mistake or an attack.
const MaxCapacity = 64 << 40

// ErrUntrusted is the error of an image that asks for more than to be a disk.
var ErrUntrusted = errors.New("the image is refused")

// magics are the heads of formats that are not taken, by where they are.
var magics = []struct {
	offset int
	magic  string
	format string
}{
	{0, "KDMV", "VMDK"},
	{0, "COWD", "VMDK"},
	{0, "# Disk DescriptorFile", "VMDK"},
	{0, "vhdxfile", "VHDX"},
	{0, "conectix", "VHD"},
	{64, "\x7f\x10\xda\xbe", "VDI"},
	{0, "QED\x00", "QED"},
	{0, "WithoutFreeSpace", "Parallels"},
	{0, "WithouFreSpacExt", "Parallels"},
	{0, "MComprHD", "MediaBackup"},
}

// Probe tells what an image is by its head, and refuses one that QEMU would open anything else for: another file, or a key.
func Probe(head []byte) (Header, error) {
	if has(head, 0, "QFI\xfb") {
		return probeQcow2(head)
	}
	for _, m := range magics {
		if has(head, m.offset, m.magic) {
			return Header{}, fmt.Errorf("%w: it is in the format %s. Convert it: qemu-img convert -O qcow2 <image> <image>.qcow2",
				ErrUntrusted, m.format)
		}
	}
	return Header{Format: "raw"}, nil
}

func has(head []byte, offset int, magic string) bool {
	return len(head) >= offset+len(magic) && string(head[offset:offset+len(magic)]) == magic
}

// The fields of a qcow2 header, by their offset (QEMU, docs/interop/qcow2.txt).
const (
	qcow2Version      = 4
	qcow2Backing      = 8
	qcow2ClusterBits  = 20
	qcow2Size         = 24
	qcow2Crypt        = 32
	qcow2Incompatible = 72
	qcow2Length       = 100
	qcow2Short        = 72 // the length of a version 2 header
)

// The incompatible features that a reader must know.
const (
	featureDirty        = 1 << 0
	featureCorrupt      = 1 << 1
	featureDataFile     = 1 << 2
	featureCompression  = 1 << 3
	featureExtendedL2   = 1 << 4
	featuresThatAreGood = featureDirty | featureCompression | featureExtendedL2
)

func probeQcow2(head []byte) (Header, error) {
	refuse := func(format string, args ...any) (Header, error) {
		return Header{}, fmt.Errorf("%w: it is a qcow2 image %s", ErrUntrusted, fmt.Sprintf(format, args...))
	}
	if len(head) < qcow2Short {
		return refuse("of %d bytes only", len(head))
	}
	version, size := binary.BigEndian.Uint32(head[qcow2Version:]), binary.BigEndian.Uint64(head[qcow2Size:])
	bits := binary.BigEndian.Uint32(head[qcow2ClusterBits:])
	switch {
	case version != 2 && version != 3:
		return refuse("of the unknown version %d", version)
	case binary.BigEndian.Uint64(head[qcow2Backing:]) != 0:
		return refuse("that names a backing file. Flatten it: qemu-img convert -O qcow2 <image> <flat>.qcow2")
	case binary.BigEndian.Uint32(head[qcow2Crypt:]) != 0:
		return refuse("that is encrypted")
	case bits < 9 || bits > 21:
		return refuse("with clusters of 2^%d bytes", bits)
	case size == 0 || size > MaxCapacity:
		return refuse("that claims to have %d bytes", size)
	}
	start := uint32(qcow2Short)
	if version == 3 {
		var err error
		if start, err = checkFeatures(head); err != nil {
			return refuse("%s", err)
		}
	}
	if err := checkExtensions(head, start); err != nil {
		return refuse("%s", err)
	}
	return Header{Format: "qcow2", Capacity: int64(size)}, nil
}

// checkFeatures looks at what is new in version 3, and tells where the header ends.
func checkFeatures(head []byte) (end uint32, err error) {
	if len(head) < qcow2Length+4 {
		return 0, fmt.Errorf("of %d bytes only", len(head))
	}
	features := binary.BigEndian.Uint64(head[qcow2Incompatible:])
	end = binary.BigEndian.Uint32(head[qcow2Length:])
	switch {
	case features&featureDataFile != 0:
		return 0, errors.New("that keeps its data in another file")
	case features&featureCorrupt != 0:
		return 0, errors.New("that is marked as corrupt")
	case features&^featuresThatAreGood != 0:
		return 0, fmt.Errorf("with unknown features (%#x)", features)
	case end < qcow2Length+4 || end > HeadSize:
		return 0, fmt.Errorf("with a header of %d bytes", end)
	}
	return end, nil
}

// The header extensions that name other files or keys.
var extensions = map[uint32]string{
	0xe2792aca: "that names the format of a backing file",
	0x44415441: "that names another file for its data",
	0x0537be77: "that is encrypted",
}

// checkExtensions walks through what follows the header, up to its end mark.
func checkExtensions(head []byte, at uint32) error {
	for at+8 <= uint32(len(head)) {
		kind, length := binary.BigEndian.Uint32(head[at:]), binary.BigEndian.Uint32(head[at+4:])
		if kind == 0 {
			return nil
		}
		if why, ok := extensions[kind]; ok {
			return errors.New(why)
		}
		if length > HeadSize {
			break
		}
		at += 8 + (length+7)/8*8
	}
	return errors.New("whose header does not end")
}
