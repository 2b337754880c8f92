package image

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// besideTables is how many bytes a qcow2 image may have beside its clusters and tables, for example for a table of snapshots.
const besideTables = 64 << 20

// Bounded reads an image with that head, which Probe has accepted, and refuses more bytes than the header accounts for: the length of a
// qcow2 image is not in its header, and a guest never sees the bytes after its clusters.
func Bounded(r io.Reader, head []byte) io.Reader {
	if !has(head, 0, magicQcow2) {
		return r
	}
	return &limited{r: r, limit: qcow2(head).longest(), tooMuch: "it is a qcow2 image with more than %d bytes, twice what its size " +
		"and its tables account for. What is beyond is not of the disk, or of its snapshots. " + Convert("qcow2", "qcow2")}
}

// longest returns the maximal length of an image in bytes: all clusters of the disk, with its tables, and as much again for freed clusters
// and snapshots.
func (q qcow2) longest() int64 {
	bits := q.word(qcow2ClusterBits)
	cluster := uint64(1) << bits
	ceil := func(bytes, unit uint64) uint64 { return (bytes + unit - 1) / unit }
	size := q.long(qcow2Size)
	clusters := 1 + ceil(size, cluster) + ceil(size, q.covered()) + ceil(uint64(q.word(qcow2L1Size))*8, cluster)
	blocks := ceil(clusters, q.countsInBlock()) + 1
	return int64(2*(clusters+2*blocks+uint64(q.word(qcow2RefcountSize)))*cluster + besideTables)
}

// countBits returns the width of a reference count; countsInBlock how many of them a block of one cluster has.
func (q qcow2) countBits() uint64 {
	if q.word(qcow2Version) == 2 {
		return 16
	}
	return 1 << q.word(qcow2RefcountOrder)
}

func (q qcow2) countsInBlock() uint64 { return 8 << q.word(qcow2ClusterBits) / q.countBits() }

// CheckWhole returns an error if an image with that head, which Probe has accepted, is shorter than its tables require; length is its
// length, and at reads it. QEMU reads zeros after the end of a file: the guest of a truncated image would find only a part of its data.
func CheckWhole(head []byte, length int64, at io.ReaderAt) error {
	if !has(head, 0, magicQcow2) {
		return nil
	}
	if err := qcow2(head).checkWhole(uint64(length), at); err != nil {
		return fmt.Errorf("%w: it is a qcow2 image of %d bytes %w", ErrUntrusted, length, err)
	}
	return nil
}

const cutOff = "It is cut off, or broken: get it again, and check it with qemu-img check"

func (q qcow2) checkWhole(length uint64, at io.ReaderAt) error {
	bits := q.word(qcow2ClusterBits)
	length = (length + 1<<bits - 1) >> bits << bits // the last cluster may be shorter
	for _, table := range []struct {
		name        string
		from, bytes uint64
	}{
		{"clusters", q.long(qcow2L1), uint64(q.word(qcow2L1Size)) * 8},
		{"reference counts", q.long(qcow2Refcounts), uint64(q.word(qcow2RefcountSize)) << bits},
		{"snapshots", q.long(qcow2SnapshotTable), uint64(q.word(qcow2Snapshots)) * shortSnapshot},
	} {
		if table.bytes > 0 && table.from+table.bytes > length {
			return fmt.Errorf("whose table of %s ends at %d. %s", table.name, table.from+table.bytes, cutOff)
		}
	}
	end, err := q.end(length, at)
	if err == nil && end > length {
		err = fmt.Errorf("whose clusters end at %d. %s", end, cutOff)
	}
	return err
}

// shortSnapshot is the minimal size in bytes of an entry in the table of snapshots.
const shortSnapshot = 40

// end returns the end of the last cluster in use by the reference counts of the last block; 0 if that block has none.
func (q qcow2) end(length uint64, at io.ReaderAt) (uint64, error) {
	bits := q.word(qcow2ClusterBits)
	table := make([]byte, uint64(q.word(qcow2RefcountSize))<<bits)
	if err := readPadded(at, table, q.long(qcow2Refcounts)); err != nil {
		return 0, err
	}
	last, from := uint64(0), uint64(0)
	for n := uint64(0); n < uint64(len(table))/8; n++ {
		block := binary.BigEndian.Uint64(table[n*8:]) &^ 511 // the lowest bits are reserved
		if block == 0 {
			continue
		}
		if block >= length {
			return 0, fmt.Errorf("with reference counts at %d. %s", block, cutOff)
		}
		last, from = n, block
	}
	if from == 0 {
		return 0, errors.New("without reference counts. " + cutOff)
	}
	block := make([]byte, 1<<bits)
	if err := readPadded(at, block, from); err != nil {
		return 0, err
	}
	used := q.lastUsed(block)
	if used == 0 {
		return 0, nil
	}
	if clusters := last*q.countsInBlock() + used; clusters < 1<<(63-bits) {
		return clusters << bits, nil
	}
	return math.MaxUint64, nil
}

// lastUsed returns how many counts of a block there are up to the last one that is not 0.
func (q qcow2) lastUsed(block []byte) uint64 {
	bits := q.countBits()
	for used := uint64(len(block)); used > 0; used-- {
		b := block[used-1]
		if b == 0 {
			continue
		}
		counts := (used*8 + bits - 1) / bits
		for ; bits < 8 && b>>(8-bits) == 0; b <<= bits { // several counts share a byte, the lowest bits first
			counts--
		}
		return counts
	}
	return 0
}

// readPadded reads p; after the end of the file there are zeros.
func readPadded(at io.ReaderAt, p []byte, offset uint64) error {
	_, err := at.ReadAt(p, int64(offset))
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
