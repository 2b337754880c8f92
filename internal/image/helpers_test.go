package image_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// disk returns n bytes of content without repetition.
func disk(n int) []byte {
	b := make([]byte, 0, n+8)
	for i := uint64(0); len(b) < n; i++ {
		b = binary.BigEndian.AppendUint64(b, i*0x9e3779b97f4a7c15)
	}
	return b[:n]
}

// readAll reads a stream as a caller would.
func readAll(r io.ReadCloser, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

func sha(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

func closed(t *testing.T, w io.WriteCloser, content []byte) {
	t.Helper()
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	closed(t, gzip.NewWriter(&b), content)
	return b.Bytes()
}

func zstandard(t *testing.T, content []byte, options ...zstd.EOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, append(options, zstd.WithEncoderConcurrency(1))...)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, w, content)
	return b.Bytes()
}

// xzed returns an xz archive that stores content uncompressed, and declares the dictionary in props
// (https://tukaani.org/xz/xz-file-format.txt).
func xzed(content []byte, props byte) []byte {
	sum := func(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b)) }
	out := append([]byte("\xfd7zXZ\x00"), sum([]byte{0, 1})...)
	block := sum([]byte{2, 0, 0x21, 1, props, 0, 0, 0})
	for rest, control := content, byte(1); len(rest) > 0; control = 2 {
		n := min(len(rest), 1<<16)
		block = append(block, control, byte((n-1)>>8), byte(n-1))
		block = append(block, rest[:n]...)
		rest = rest[n:]
	}
	block = append(block, 0)
	size := len(block) + 4
	for len(block)%4 != 0 {
		block = append(block, 0)
	}
	block = binary.LittleEndian.AppendUint32(block, crc32.ChecksumIEEE(content))
	index := binary.AppendUvarint(binary.AppendUvarint([]byte{0, 1}, uint64(size)), uint64(len(content)))
	for len(index)%4 != 0 {
		index = append(index, 0)
	}
	index = sum(index)
	footer := append(binary.LittleEndian.AppendUint32(nil, uint32(len(index)/4-1)), 0, 1)
	footer = append(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(footer)), footer...)
	return append(append(append(append(out, block...), index...), footer...), "YZ"...)
}

// dictionary1MiB and the other constants are dictionary sizes in the properties of xz.
const (
	dictionary1MiB  = 16
	dictionary64MiB = 28
	dictionary96MiB = 29
	dictionary4GiB  = 40
)
