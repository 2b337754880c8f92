package image

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const magicQcow2 = "QFI\xfb"

// The offsets of the fields of a qcow2 header (QEMU, docs/interop/qcow2.txt).
const (
	qcow2Version       = 4
	qcow2Backing       = 8
	qcow2BackingSize   = 16
	qcow2ClusterBits   = 20
	qcow2Size          = 24
	qcow2Crypt         = 32
	qcow2L1Size        = 36
	qcow2L1            = 40
	qcow2Refcounts     = 48
	qcow2RefcountSize  = 56
	qcow2Snapshots     = 60
	qcow2SnapshotTable = 64
	qcow2Incompatible  = 72
	qcow2RefcountOrder = 96
	qcow2Length        = 100
	qcow2Compression   = 104
	qcow2Short         = 72 // the length of a version 2 header
)

// The incompatible features, which a reader must support.
const (
	featureDirty        = 1 << 0
	featureCorrupt      = 1 << 1
	featureDataFile     = 1 << 2
	featureCompression  = 1 << 3
	featureExtendedL2   = 1 << 4
	featuresThatAreGood = featureDirty | featureCompression | featureExtendedL2
)

// QEMU's limits for tables, in bytes, and for snapshots (QEMU, block/qcow2.h).
const (
	maxL1        = 32 << 20
	maxRefcounts = 8 << 20
	maxSnapshots = 65536
)

// qcow2 is the header of an image.
type qcow2 []byte

func (q qcow2) word(at int) uint32 { return binary.BigEndian.Uint32(q[at:]) }
func (q qcow2) long(at int) uint64 { return binary.BigEndian.Uint64(q[at:]) }

// probeQcow2 also refuses a backing file, unless overlay is set.
func probeQcow2(head qcow2, overlay bool) (Header, error) {
	err := head.check()
	if err == nil && !overlay && head.long(qcow2Backing) != 0 {
		err = errors.New("that names a backing file. " + Convert("qcow2", "qcow2"))
	}
	if err == nil {
		err = head.checkExtensions(overlay)
	}
	if err != nil {
		return Header{}, fmt.Errorf("%w: it is a qcow2 image %w", ErrUntrusted, err)
	}
	return Header{Format: "qcow2", Capacity: int64(head.long(qcow2Size))}, nil
}

func (q qcow2) check() error {
	if len(q) < qcow2Short {
		return fmt.Errorf("of %d bytes only", len(q))
	}
	version, bits, size := q.word(qcow2Version), q.word(qcow2ClusterBits), q.long(qcow2Size)
	switch {
	case version != 2 && version != 3:
		return fmt.Errorf("of the unknown version %d", version)
	case q.word(qcow2Crypt) != 0:
		return errors.New("that is encrypted")
	case bits < 9 || bits > 21:
		return fmt.Errorf("with clusters of 2^%d bytes", bits)
	case size == 0 || size > MaxCapacity:
		return fmt.Errorf("that claims to have %d bytes", size)
	}
	if version == 3 {
		if err := q.checkFeatures(); err != nil {
			return err
		}
	}
	return q.checkTables()
}

// features returns the incompatible features.
func (q qcow2) features() uint64 {
	if q.word(qcow2Version) == 2 {
		return 0
	}
	return q.long(qcow2Incompatible)
}

// length returns the length of the header without its extensions.
func (q qcow2) length() uint32 {
	if q.word(qcow2Version) == 2 {
		return qcow2Short
	}
	return q.word(qcow2Length)
}

// checkFeatures checks the fields that version 3 has added.
func (q qcow2) checkFeatures() error {
	if len(q) < qcow2Length+4 {
		return fmt.Errorf("of %d bytes only", len(q))
	}
	features, end := q.long(qcow2Incompatible), q.word(qcow2Length)
	switch {
	case features&featureDataFile != 0:
		return errors.New("that keeps its data in another file")
	case features&featureCorrupt != 0:
		return errors.New("that is marked as corrupt")
	case features&^featuresThatAreGood != 0:
		return fmt.Errorf("with unknown features (%#x)", features)
	case features&featureExtendedL2 != 0 && q.word(qcow2ClusterBits) < 14:
		return errors.New("with parts of clusters that are too small")
	case end < qcow2Length+4 || end > HeadSize || int(end) > len(q):
		return fmt.Errorf("with a header of %d bytes", end)
	case q.word(qcow2RefcountOrder) > 6:
		return fmt.Errorf("with reference counts of 2^%d bits", q.word(qcow2RefcountOrder))
	case end > qcow2Compression && q[qcow2Compression] > 1:
		return fmt.Errorf("with the unknown compression %d", q[qcow2Compression])
	}
	return nil
}

// covered returns how many bytes of the disk an entry of the first-level table covers: it references a second-level table, which is one
// cluster long.
func (q qcow2) covered() uint64 {
	entry := uint64(8)
	if q.features()&featureExtendedL2 != 0 {
		entry = 16
	}
	return uint64(1) << (2 * q.word(qcow2ClusterBits)) / entry
}

// checkTables checks the sizes of the tables, which QEMU keeps in memory, and their offsets. CheckWhole checks whether they are in the
// file, of which only the header is available here.
func (q qcow2) checkTables() error {
	bits, covered := q.word(qcow2ClusterBits), q.covered()
	l1, snapshots := uint64(q.word(qcow2L1Size)), q.word(qcow2Snapshots)
	switch {
	case l1*8 > maxL1:
		return fmt.Errorf("with a table of %d bytes for its clusters", l1*8)
	case l1 < (q.long(qcow2Size)+covered-1)/covered:
		return fmt.Errorf("with a table of %d bytes for its clusters, which is not enough", l1*8)
	case uint64(q.word(qcow2RefcountSize))<<bits > maxRefcounts || q.word(qcow2RefcountSize) == 0:
		return fmt.Errorf("with a table of %d clusters for reference counts", q.word(qcow2RefcountSize))
	case snapshots > maxSnapshots:
		return fmt.Errorf("with %d snapshots", snapshots)
	}
	for at, name := range map[int]string{qcow2L1: "clusters", qcow2Refcounts: "reference counts"} {
		if err := q.checkOffset(at, name); err != nil {
			return err
		}
	}
	if snapshots > 0 {
		return q.checkOffset(qcow2SnapshotTable, "snapshots")
	}
	return nil
}

func (q qcow2) checkOffset(at int, name string) error {
	cluster := uint64(1) << q.word(qcow2ClusterBits)
	if offset := q.long(at); offset < cluster || offset%cluster != 0 || offset > 2*MaxCapacity {
		return fmt.Errorf("with its table of %s at the offset %d", name, offset)
	}
	return nil
}

// backingFormat is the type of the header extension that only an overlay has.
const backingFormat = 0xe2792aca

// extensions are the refused header extensions: they reference other files or keys, or have QEMU allocate memory without a limit in the
// header.
var extensions = map[uint32]string{
	backingFormat: "that names the format of a backing file",
	0x44415441:    "that names another file for its data",
	0x0537be77:    "that is encrypted",
	0x23852875: "with persistent bitmaps, which QEMU would have in memory. Remove each with qemu-img bitmap --remove <image> <bitmap> " +
		"(qemu-img info lists them), and then a checkpoint of libvirt's that it was of with virsh checkpoint-delete --metadata, or all. " +
		Convert("qcow2", "qcow2"),
}

// checkExtensions checks the header extensions, up to their end mark, which must be in the first cluster.
func (q qcow2) checkExtensions(overlay bool) error {
	q = q.firstCluster()
	at := q.length()
	for at+8 <= uint32(len(q)) {
		kind, length := q.word(int(at)), q.word(int(at)+4)
		if kind == 0 {
			return nil
		}
		if why, ok := extensions[kind]; ok && (kind != backingFormat || !overlay) {
			return errors.New(why)
		}
		if length > HeadSize {
			break
		}
		at += 8 + (length+7)/8*8
	}
	return errors.New("whose header does not end")
}

// HasDataFile reports whether head is that of a qcow2 image with an external data file.
func HasDataFile(head []byte) bool {
	q := qcow2(head)
	return len(q) >= qcow2Incompatible+8 && has(q, 0, magicQcow2) && q.features()&featureDataFile != 0
}
