package artefact

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
)

var (
	gzipMagic = []byte("\x1f\x8b")
	xzMagic   = []byte("\xfd7zXZ\x00")
	zstdMagic = []byte("\x28\xb5\x2f\xfd")
	elfMagic  = []byte("\x7fELF")
)

// decompress detects the format of a kernel or module by its first bytes.
func decompress(data []byte) ([]byte, error) {
	var reader io.Reader
	var err error
	switch {
	case bytes.HasPrefix(data, elfMagic):
		return data, nil
	case bytes.HasPrefix(data, gzipMagic):
		reader, err = gzip.NewReader(bytes.NewReader(data))
	case bytes.HasPrefix(data, zstdMagic):
		return decompressZstd(data)
	case bytes.HasPrefix(data, xzMagic):
		// This package supports the filter for x86 code that kernels are packed with.
		reader, err = xz.NewReader(bytes.NewReader(data), xz.DefaultDictMax)
	default:
		err = fmt.Errorf("it is compressed neither with gzip, xz nor zstd: it begins with %x", data[:min(8, len(data))])
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// decompressZstd allows the long windows that kernels are packed with.
func decompressZstd(data []byte) ([]byte, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	return decoder.DecodeAll(data, nil)
}
