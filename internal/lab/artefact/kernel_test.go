package artefact

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bootImage puts a payload into the smallest image of the boot protocol.
func bootImage(payload []byte) []byte {
	const setupSectors, offset = 1, 16
	image := make([]byte, (setupSectors+1)*sectorSize+offset)
	image[setupSectorsField] = setupSectors
	copy(image[headerMagicField:], "HdrS")
	binary.LittleEndian.PutUint32(image[payloadOffsetField:], offset)
	binary.LittleEndian.PutUint32(image[payloadLengthField:], uint32(len(payload)))
	return append(image, payload...)
}

func withSize(compressed []byte, size int) []byte {
	return binary.LittleEndian.AppendUint32(compressed, uint32(size))
}

func TestKernel_IsExtracted(t *testing.T) {
	kernel := append([]byte("\x7fELF"), bytes.Repeat([]byte("\xe8\x10\x00\x00\x00"), 40)...)
	for name, image := range map[string][]byte{
		"gzip":                   bootImage(gzipped(t, kernel)),
		"zstd":                   bootImage(withSize(zstdCompressed(t, kernel), len(kernel))),
		"xz with the x86 filter": bootImage(withSize(xzFiltered(t), len(kernel))),
		"followed by signature":  append(bootImage(gzipped(t, kernel)), "signature"...),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "vmlinuz")
			if err := os.WriteFile(path, image, 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := system{vmlinuz: path}.kernel()
			if err != nil || !bytes.Equal(got, kernel) {
				t.Errorf("kernel() = %d bytes, %v, want the %d that went in", len(got), err, len(kernel))
			}
		})
	}
}

func TestKernel_Refused(t *testing.T) {
	elf := []byte("\x7fELF...")
	whole := bootImage(gzipped(t, elf))
	for name, test := range map[string]struct {
		image []byte
		want  string
	}{
		"empty file":             {nil, "no bootable x86 kernel"},
		"without magic":          {make([]byte, 2048), "no bootable x86 kernel"},
		"cut short":              {whole[:len(whole)-1], "cut short"},
		"payload of three bytes": {bootImage([]byte("abc")), "cut short"},
		"unknown compression":    {bootImage([]byte("BZh91AY&SY..")), "neither with gzip, xz nor zstd"},
		"no ELF inside":          {bootImage(gzipped(t, []byte("text"))), "no ELF file"},
		"another size":           {bootImage(withSize(zstdCompressed(t, elf), 99)), "no ELF file of 99 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "vmlinuz")
			if err := os.WriteFile(path, test.image, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := (system{vmlinuz: path}).kernel(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("kernel() fails with %v, want %q", err, test.want)
			}
		})
	}
}
