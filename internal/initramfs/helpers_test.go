package initramfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"
	"github.com/klauspost/compress/zstd"
)

// kernelFor is the beginning of a kernel.
func kernelFor(architecture string) []byte {
	image := make([]byte, 4<<10)
	switch architecture {
	case "amd64":
		copy(image[0x202:], "HdrS")
		image[0x236] = 1
	case "arm64":
		copy(image[0x38:], "ARM\x64")
	}
	return image
}

// moduleOf is the smallest ELF file with a section .modinfo.
func moduleOf(t testing.TB, depends string) []byte {
	t.Helper()
	const names, head, section = "\x00.modinfo\x00.shstrtab\x00", 64, 64
	info := "license=GPL\x00depends=" + depends + "\x00"
	data := info + names
	header := elf.Header64{
		Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Shoff: uint64(head + len(data)), Ehsize: head, Shentsize: section, Shnum: 3, Shstrndx: 2,
	}
	copy(header.Ident[:], "\x7fELF")
	header.Ident[elf.EI_CLASS], header.Ident[elf.EI_DATA], header.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: head, Size: uint64(len(info))},
		{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: uint64(head + len(info)), Size: uint64(len(names))},
	}
	var file bytes.Buffer
	for _, part := range []any{header, []byte(data), sections} {
		if err := binary.Write(&file, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return file.Bytes()
}

const release = "lib/modules/6.1-a/"

// distribution are the files of a kernel's package.
func distribution(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{
		"boot/vmlinuz-6.1-a":                            string(kernelFor("amd64")),
		release + "modules.builtin":                     "kernel/drivers/virtio/virtio-pci.ko\nkernel/net/unix/unix.ko\n",
		release + "kernel/drivers/usb/host/xhci-pci.ko": "not wanted",
		"usr/share/doc/readme":                          "not wanted",
	}
	for path, depends := range map[string]string{
		"drivers/block/virtio_blk": "virtio_ring", "drivers/virtio/virtio_ring": "", "fs/ext4/ext4": "jbd2,mbcache", "fs/jbd2/jbd2": "", "fs/mbcache": "",
		"drivers/firmware/qemu_fw_cfg": "", "crypto/crc32c_generic": "", "fs/fat/vfat": "fat", "fs/fat/fat": "", "fs/nls/nls_iso8859-1": "",
	} {
		all[release+"kernel/"+path+".ko"] = string(moduleOf(t, depends))
	}
	return all
}

func archive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(files[name])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func packed(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// debianPackage is an archive of ar with that data.
func debianPackage(data []byte) []byte {
	out := bytes.NewBufferString(arMagic)
	for _, m := range []struct {
		name    string
		content []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", []byte("odd")}, {"data.tar.gz", data}} {
		fmt.Fprintf(out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, 0, 0, 0, "100644", len(m.content))
		out.Write(m.content)
		if len(m.content)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// zstdPacked is packed with zstd.
func zstdPacked(t testing.TB, content []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(content, nil)
}

// rpmPackage is an RPM package with these files, and headers of odd lengths.
func rpmPackage(t testing.TB, files map[string]string, pack func(testing.TB, []byte) []byte) []byte {
	t.Helper()
	var content bytes.Buffer
	w := cpio.NewWriter(&content)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&cpio.Header{Name: "./" + name, Mode: cpio.TypeReg | 0o644, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out := append([]byte(rpmMagic), make([]byte, rpmLead-len(rpmMagic))...)
	for _, padding := range []int{3, 0} { // of the first header, of 16 bytes and two entries
		out = append(out, rpmHeaderMagic+"\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x05"...)
		out = append(out, make([]byte, 2*16+5+padding)...)
	}
	return append(out, pack(t, content.Bytes())...)
}

// linked is an archive of ostree's objects, and of files as hard links to them.
func linked(t testing.TB, files map[string]string, hasObject, hasLink func(string) bool) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, isLink := range []bool{false, true} {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			object := "sysroot/ostree/repo/objects/" + strings.ReplaceAll(name, "/", "-") + ".file"
			h, content := &tar.Header{Name: object, Typeflag: tar.TypeReg, Size: int64(len(files[name]))}, files[name]
			if isLink {
				h, content = &tar.Header{Name: "usr/" + name, Typeflag: tar.TypeLink, Linkname: object}, ""
			}
			if isLink && !hasLink(name) || !isLink && !hasObject(name) {
				continue
			}
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// opened opens that content.
func opened(content []byte) opener {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}

// unpackInitrd returns the files of an initial RAM disk, with modules unpacked.
func unpackInitrd(t testing.TB, initrd []byte) map[string]string {
	t.Helper()
	content, err := gzip.NewReader(bytes.NewReader(initrd))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := cpio.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(h.Name, ".ko") {
			module, err := gzip.NewReader(bytes.NewReader(content))
			if err == nil {
				content, err = io.ReadAll(module)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		files[h.Name] = string(content)
	}
}
