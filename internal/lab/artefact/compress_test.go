package artefact

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	if _, err := writer.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return compressed.Bytes()
}

func zstdCompressed(t *testing.T, content []byte) []byte {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return encoder.EncodeAll(content, nil)
}

// xzFiltered is "\x7fELF" and 40 times "\xe8\x10\x00\x00\x00", a call
// instruction, packed by xz --check=crc32 --x86 --lzma2.
func xzFiltered(t *testing.T) []byte {
	t.Helper()
	compressed, err := base64.StdEncoding.DecodeString(
		"/Td6WFoAAAFpIt42AgEEACEBFgANhjUf4ADLAFRdAD+RRYRwahXheO9J/hpsU/ElWu/qda1ClHT/VYO+xrowMBsVLcL+" +
			"GABb6uzHHnAtLHPC7neDKI/0sIwmfzMjCD80YGUDBB7XkrbOexp5brES46iwAADzFtEFAAFszAEAAABDeTooPjANiwIA" +
			"AAAAAVla")
	if err != nil {
		t.Fatal(err)
	}
	return compressed
}
