package artefact

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// The fields of Linux' x86 boot protocol (version 2.08 and later) that locate
// the compressed kernel, as offsets in the file.
const (
	setupSectorsField  = 0x1f1
	headerMagicField   = 0x202
	payloadOffsetField = 0x248
	payloadLengthField = 0x24c
	headerEnd          = 0x250

	sectorSize = 512
)

// kernel returns the ELF file inside the compressed kernel.
func (s system) kernel() ([]byte, error) {
	image, err := os.ReadFile(s.vmlinuz)
	if err != nil {
		return nil, err
	}
	payload, size, err := kernelPayload(image)
	if err != nil {
		return nil, err
	}
	kernel, err := decompress(payload)
	if err != nil {
		return nil, err
	}
	if len(kernel) != size || !bytes.HasPrefix(kernel, elfMagic) {
		return nil, fmt.Errorf("its content is no ELF file of %d bytes", size)
	}
	return kernel, nil
}

// kernelPayload returns the compressed kernel in a boot image, and the size in
// bytes that it must have when decompressed.
func kernelPayload(image []byte) (payload []byte, size int, err error) {
	if len(image) < headerEnd || !bytes.HasPrefix(image[headerMagicField:], []byte("HdrS")) {
		return nil, 0, errors.New("it is no bootable x86 kernel")
	}
	setupSectors := uint64(image[setupSectorsField])
	start := (setupSectors+1)*sectorSize + uint64(binary.LittleEndian.Uint32(image[payloadOffsetField:]))
	end := start + uint64(binary.LittleEndian.Uint32(image[payloadLengthField:]))
	if end > uint64(len(image)) || end-start < 4 {
		return nil, 0, errors.New("it is cut short")
	}
	payload, tail := image[start:end], image[end-4:end]
	if !bytes.HasPrefix(payload, gzipMagic) {
		payload = image[start : end-4] // gzip ends with the size itself, to other formats it is appended
	}
	return payload, int(binary.LittleEndian.Uint32(tail)), nil
}
