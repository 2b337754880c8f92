package initramfs

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// ArchitectureOf is the architecture of a kernel, in Go's notation, by its beginning, of which 512 bytes suffice.
func ArchitectureOf(head []byte) (string, error) {
	at := func(offset int, magic string) bool {
		return len(head) > offset && bytes.HasPrefix(head[offset:], []byte(magic))
	}
	switch {
	// xloadflags of Linux' boot protocol 2.12: it has a 64-bit entry point
	case at(0x202, "HdrS") && len(head) >= 0x238 && head[0x236]&1 != 0:
		return "amd64", nil
	case at(0x38, "ARM\x64"): // the header of Linux' arm64 Image
		return "arm64", nil
	case at(0, "MZ") && at(4, "zimg"), at(0, "\x7fELF"):
		return machineOf(head)
	}
	return "", fmt.Errorf("%w: it is no kernel for amd64 or arm64", image.ErrUntrusted)
}

// machineOf is the architecture of an ELF file, or of an EFI program that unpacks a kernel (CONFIG_EFI_ZBOOT).
func machineOf(head []byte) (string, error) {
	elfMachines := map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}
	efiMachines := map[uint16]string{0x8664: "amd64", 0xaa64: "arm64"}
	is := ""
	if head[0] == 0x7f && len(head) > 20 {
		is = elfMachines[elf.Machine(binary.LittleEndian.Uint16(head[18:]))]
	} else if len(head) >= 0x40 {
		if at := int(binary.LittleEndian.Uint32(head[0x3c:])); at >= 0 && at+6 <= len(head) {
			is = efiMachines[binary.LittleEndian.Uint16(head[at+4:])]
		}
	}
	if is == "" {
		return "", fmt.Errorf("%w: it is a kernel for another architecture than amd64 and arm64", image.ErrUntrusted)
	}
	return is, nil
}
