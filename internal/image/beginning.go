package image

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The bits of an entry of a qcow2 table that are its offset, and those of compressed and zero clusters.
const (
	qcow2Offset     = 0x00fffffffffffe00
	qcow2Compressed = 1 << 62
	qcow2Zero       = 1
)

// Beginning returns the first bytes that a guest sees of an image, as far as they are in the image and not in those below, and in the first
// cluster: else zeros. at reads the image's file.
func Beginning(format string, at io.ReaderAt, size int) ([]byte, error) {
	beginning := make([]byte, size)
	if format == "raw" {
		return beginning, readPadded(at, beginning, 0)
	}
	head := make([]byte, HeadSize)
	if err := readPadded(at, head, 0); err != nil {
		return nil, err
	}
	if is, err := ProbeOverlay(head); err != nil || is.Format != "qcow2" {
		return nil, errors.Join(err, errors.New("it is no qcow2 image"))
	}
	from := qcow2(head).long(qcow2L1)
	for range 2 { // the first entry of the table that has the table of the clusters, and of that
		entry := make([]byte, 8)
		if err := readPadded(at, entry, from); err != nil {
			return nil, err
		}
		is := binary.BigEndian.Uint64(entry)
		if is&qcow2Compressed != 0 {
			return nil, fmt.Errorf("its first cluster is compressed (%#x)", is)
		}
		if from = is & qcow2Offset; from == 0 || is&qcow2Zero != 0 {
			return beginning, nil
		}
	}
	return beginning, readPadded(at, beginning[:min(size, 1<<qcow2(head).word(qcow2ClusterBits))], from)
}
