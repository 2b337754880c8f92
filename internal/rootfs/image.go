package rootfs

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// The format is that of https://www.qemu.org/docs/master/interop/qcow2.html, version 3.
const (
	clusterBits  = 16
	tableEntries = clusterSize / 8
	clusters     = Size / clusterSize
	refcounts    = clusterSize / 2 // in a cluster
	headerLength = 104

	isCopied = 1 << 63 // the cluster has one reference
	isZeros  = 1       // instead of an offset: the cluster reads as zeros

	backingFormatExtension = 0xe2792aca
	changesExtension       = 0x76634c79 // the place, length and SHA-256 of the changes
	digestSize             = 32
	changesLength          = 16 + digestSize
)

// image is a qcow2 image that is written in one go, but for its first cluster.
type image struct {
	out  io.Writer
	next int64 // where out is in the file
	// disk is a raw disk instead, which gets the clusters where they belong.
	disk io.WriterAt
	// offsets are those of all clusters, 0 for one of the backing image.
	offsets []uint64
}

func newImage(out io.Writer) *image {
	return &image{out: out, next: clusterSize, offsets: make([]uint64, clusters)}
}

// write writes a cluster, once for each layer.
func (i *image) write(number uint32, cluster []byte) error {
	if i.disk != nil {
		if isZero(cluster) && i.offsets[number] == 0 {
			return nil
		}
		i.offsets[number] = isZeros // or not any more
		_, err := i.disk.WriteAt(cluster, int64(number)*clusterSize)
		return err
	}
	if isZero(cluster) {
		i.offsets[number] = isZeros
		return nil
	}
	at, err := i.append(cluster)
	i.offsets[number] = at | isCopied
	return err
}

func (i *image) append(b []byte) (at uint64, err error) {
	at = uint64(i.next)
	i.next += int64(len(b))
	_, err = i.out.Write(b)
	return at, err
}

// finish writes the tables, and then the changes, which are outside of all clusters. It returns the first cluster.
func (i *image) finish(backing string, changes []byte, digest [digestSize]byte) (head []byte, err error) {
	level1 := make([]byte, clusterSize)
	for n := range clusters / tableEntries {
		part := i.offsets[n*tableEntries : (n+1)*tableEntries]
		if !slices.ContainsFunc(part, func(o uint64) bool { return o != 0 }) {
			continue
		}
		at, err := i.append(bigEndian(part))
		if err != nil {
			return nil, err
		}
		binary.BigEndian.PutUint64(level1[n*8:], at|isCopied)
	}
	tables, err := i.append(level1)
	if err != nil {
		return nil, err
	}
	refcountTable, err := i.writeRefcounts()
	if err != nil {
		return nil, err
	}
	at, err := i.append(changes)
	if err != nil {
		return nil, err
	}
	h := header{
		tables: tables, refcountTable: refcountTable, backing: backing, changes: at, length: uint64(len(changes)),
		digest: digest,
	}
	return h.encode()
}

// writeRefcounts writes that each cluster so far, and those of the refcounts, are used once.
func (i *image) writeRefcounts() (table uint64, err error) {
	used := i.next/clusterSize + 1
	n := int64(1)
	for n*refcounts < used+n {
		n++
	}
	places := make([]uint64, tableEntries)
	for k := range n {
		places[k] = uint64(i.next + (1+k)*clusterSize)
	}
	if table, err = i.append(bigEndian(places)); err != nil {
		return 0, err
	}
	for k := range n {
		block := make([]byte, clusterSize)
		for c := range min(refcounts, used+n-k*refcounts) {
			block[2*c+1] = 1
		}
		if _, err := i.append(block); err != nil {
			return 0, err
		}
	}
	return table, nil
}

func bigEndian(numbers []uint64) []byte {
	b := make([]byte, 0, 8*len(numbers))
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func isZero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
	}
	return true
}

// header is what the first cluster tells.
type header struct {
	tables, refcountTable uint64
	backing               string
	changes, length       uint64
	digest                [digestSize]byte
}

func (h header) encode() ([]byte, error) {
	b := make([]byte, 0, clusterSize)
	put := func(numbers ...uint32) {
		for _, n := range numbers {
			b = binary.BigEndian.AppendUint32(b, n)
		}
	}
	put(0x514649fb, 3, 0, 0, 0, clusterBits, Size>>32, Size&0xffffffff, 0, clusters/tableEntries)
	b = bigEndianOnto(b, h.tables, h.refcountTable)
	put(1)                             // cluster of the refcount table
	b = append(b, make([]byte, 36)...) // no snapshots, no features
	put(4, headerLength)               // refcounts of 1<<4 bits
	put(changesExtension, changesLength)
	b = bigEndianOnto(b, h.changes, h.length)
	b = append(b, h.digest[:]...)
	if h.backing != "" {
		put(backingFormatExtension, 5)
		b = append(b, "qcow2\x00\x00\x00"...)
		put(0, 0)
		binary.BigEndian.PutUint64(b[8:], uint64(len(b)))
		binary.BigEndian.PutUint32(b[16:], uint32(len(h.backing)))
		b = append(b, h.backing...)
	}
	if len(h.backing) > 1023 {
		return nil, fmt.Errorf("the name of a backing image may have 1023 bytes, and has %d", len(h.backing))
	}
	return append(b, make([]byte, clusterSize-len(b))...), nil
}

func bigEndianOnto(b []byte, numbers ...uint64) []byte { return append(b, bigEndian(numbers)...) }
