package artefact

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kernelModule is the smallest ELF file with a section .modinfo.
func kernelModule(t *testing.T, modinfo string) []byte {
	t.Helper()
	const names = "\x00.modinfo\x00.shstrtab\x00"
	const headerSize, sectionSize = 64, 64
	data := modinfo + names
	header := elf.Header64{
		Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Shoff: uint64(headerSize + len(data)), Ehsize: headerSize, Shentsize: sectionSize, Shnum: 3, Shstrndx: 2,
	}
	copy(header.Ident[:], "\x7fELF")
	header.Ident[elf.EI_CLASS] = byte(elf.ELFCLASS64)
	header.Ident[elf.EI_DATA] = byte(elf.ELFDATA2LSB)
	header.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: headerSize, Size: uint64(len(modinfo))},
		{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: uint64(headerSize + len(modinfo)), Size: uint64(len(names))},
	}
	var file bytes.Buffer
	for _, part := range []any{header, []byte(data), sections} {
		if err := binary.Write(&file, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return file.Bytes()
}

// moduleFolder has sd_mod → scsi_mod → scsi_common, virtio_scsi → scsi_mod, and
// one module with a missing dependency.
func moduleFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for path, content := range map[string][]byte{
		"modules.builtin":                 []byte("kernel/drivers/virtio/virtio-ring.ko\n"),
		"kernel/drivers/scsi/sd_mod.ko":   kernelModule(t, "license=GPL\x00depends=scsi-mod\x00"),
		"kernel/drivers/scsi/scsi_mod.ko": kernelModule(t, "depends=scsi_common\x00name=scsi_mod\x00"),
		"kernel/scsi_common.ko.gz":        gzipped(t, kernelModule(t, "depends=\x00")),
		"kernel/virtio-scsi.ko.zst":       zstdCompressed(t, kernelModule(t, "depends=virtio_ring,scsi_mod\x00")),
		"kernel/broken.ko":                kernelModule(t, "depends=missing\x00"),
		"kernel/text.ko":                  []byte("text"),
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestModules_DependencyOrder(t *testing.T) {
	modules, err := loadModules(moduleFolder(t), []string{"sd_mod", "virtio_scsi", "virtio_ring"})
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(modules))
	for _, module := range modules {
		names = append(names, module.name)
		if !bytes.HasPrefix(module.content, elfMagic) {
			t.Errorf("module %s is still compressed", module.name)
		}
	}
	want := []string{"scsi_common", "scsi_mod", "sd_mod", "virtio_scsi"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
}

func TestModules_Unloadable(t *testing.T) {
	dir := moduleFolder(t)
	for name, want := range map[string]string{
		"absent": "the kernel has no module absent",
		"broken": "for broken: the kernel has no module missing",
		"text":   "text.ko: it is compressed neither",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := loadModules(dir, []string{name}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("loadModules() fails with %v, want %q", err, want)
			}
		})
	}
}
