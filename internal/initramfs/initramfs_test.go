package initramfs

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

func initrdOf(t *testing.T, k *Kernel) map[string]string {
	t.Helper()
	var first, second bytes.Buffer
	for _, to := range []*bytes.Buffer{&first, &second} {
		if err := k.Write(to, []byte("the init")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same kernel has two initial RAM disks")
	}
	return unpackInitrd(t, first.Bytes())
}

func TestRead_Packages(t *testing.T) {
	files := distribution(t)
	merged, inModules := map[string]string{}, maps.Clone(files)
	for name, content := range files {
		merged["./usr/"+name] = content
		merged["./"+name] = content // as over a link from /lib to /usr/lib
	}
	inModules[release+"vmlinuz"] = inModules["boot/vmlinuz-6.1-a"]
	alpine := maps.Clone(files)
	alpine["boot/vmlinuz-virt"] = alpine["boot/vmlinuz-6.1-a"]
	delete(alpine, "boot/vmlinuz-6.1-a")
	withZstd := maps.Clone(files)
	for name, content := range files {
		if strings.HasSuffix(name, ".ko") {
			alpine[name+".gz"], withZstd[name+".zst"] = string(packed(t, []byte(content))), string(zstdPacked(t, []byte(content)))
			delete(alpine, name)
			delete(withZstd, name)
		}
	}
	for name, content := range map[string][]byte{
		"tar": archive(t, files), "tar.gz": packed(t, archive(t, files)), "Debian package": debianPackage(packed(t, archive(t, files))),
		"RPM package": rpmPackage(t, inModules, packed), "RPM package, zstd": rpmPackage(t, withZstd, zstdPacked), "Alpine": archive(t, alpine),
		"Alpine's package": append(packed(t, bytes.TrimRight(archive(t, map[string]string{".PKGINFO": strings.Repeat("i", 512)}), "\x00")), packed(t, archive(t, alpine))...),
		"hard links":       linked(t, files, func(string) bool { return true }, func(string) bool { return true }),
		"below usr":        archive(t, merged), "kernel in two places": archive(t, inModules),
	} {
		k, err := Read(opened(content))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if k.Architecture != "amd64" || k.Release != "6.1-a" || len(k.Image) != 4<<10 {
			t.Errorf("%s: %s %s of %d bytes", name, k.Architecture, k.Release, len(k.Image))
		}
		initrd := initrdOf(t, k)
		if got, want := initrd[moduleList], "crc32c_generic.ko\nvirtio_ring.ko\nvirtio_blk.ko\njbd2.ko\nmbcache.ko\next4.ko\nqemu_fw_cfg.ko\n"; got != want {
			t.Errorf("%s: loads %q, not %q", name, got, want)
		}
		if got, want := initrd[moduleList+".vfat"], "fat.ko\nvfat.ko\nnls_iso8859_1.ko\n"; got != want || initrd["init"] != "the init" {
			t.Errorf("%s: for vfat %q, init %q", name, got, initrd["init"])
		}
		if !strings.HasPrefix(initrd["modules/ext4.ko"], "\x7fELF") {
			t.Errorf("%s: ext4 is %q", name, initrd["modules/ext4.ko"])
		}
	}
}

func TestRead_KernelAlone(t *testing.T) {
	for name, content := range map[string][]byte{"amd64": kernelFor("amd64"), "arm64": packed(t, kernelFor("arm64"))} {
		k, err := Read(opened(content))
		if err != nil {
			t.Fatal(err)
		}
		if k.Architecture != name || k.Release != "" || initrdOf(t, k)[moduleList] != "\n" {
			t.Errorf("%s: %+v", name, k)
		}
	}
}

func TestRead_Refused(t *testing.T) {
	without := func(change func(map[string]string)) []byte {
		files := distribution(t)
		change(files)
		return archive(t, files)
	}
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"nothing":   {nil, "no kernel for amd64 or arm64"},
		"web page":  {[]byte("<!doctype html>"), "no kernel for amd64 or arm64"},
		"no kernel": {without(func(f map[string]string) { delete(f, "boot/vmlinuz-6.1-a") }), `there is no kernel in it, and ["6.1-a"] as folders of modules`},
		"two kernels": {without(func(f map[string]string) {
			f["boot/vmlinuz-6.2"] = f["boot/vmlinuz-6.1-a"]
			f["lib/modules/6.2/kernel/fs/ext4/ext4.ko"] = ""
		}), `it has the kernels ["boot/vmlinuz-6.1-a" "boot/vmlinuz-6.2"], and ["6.1-a" "6.2"] as folders of modules`},
		"modules of another kernel": {without(func(f map[string]string) {
			f["boot/vmlinuz-6.2"] = f["boot/vmlinuz-6.1-a"]
			delete(f, "boot/vmlinuz-6.1-a")
		}), `it has the kernels ["boot/vmlinuz-6.2"], and ["6.1-a"] as folders of modules. It should have one boot/vmlinuz-<release>`},
		"two kernels of Alpine": {without(func(f map[string]string) {
			f["boot/vmlinuz-virt"], f["boot/vmlinuz-lts"] = f["boot/vmlinuz-6.1-a"], f["boot/vmlinuz-6.1-a"]
			delete(f, "boot/vmlinuz-6.1-a")
			f["lib/modules/6.2/kernel/fs/ext4/ext4.ko"] = ""
		}), `it has the kernels ["boot/vmlinuz-lts" "boot/vmlinuz-virt"]`},
		"cut RPM package":            {rpmPackage(t, distribution(t), packed)[:200], "no whole RPM package"},
		"RPM package with bzip2":     {rpmPackage(t, distribution(t), func(testing.TB, []byte) []byte { return []byte("BZh91AY&SY" + strings.Repeat("x", 200)) }), "packed with gzip, xz or zstd"},
		"RPM package without header": {append(rpmPackage(t, nil, packed)[:rpmLead], make([]byte, 100)...), "a header is missing"},
		"RPM package, cut unpacked":  {rpmPackage(t, distribution(t), func(_ testing.TB, b []byte) []byte { return b[:len(b)/2] }), "unexpected EOF"},
		"RPM package, odd size": {rpmPackage(t, distribution(t), func(_ testing.TB, b []byte) []byte {
			return append(append(bytes.Clone(b[:54]), "-0000001"...), b[62:]...)
		}), "a file has no size"},
		"for another architecture": {without(func(f map[string]string) { f["boot/vmlinuz-6.1-a"] = "\x7fELF" + strings.Repeat("\x00", 60) }), "another architecture"},
		"cut package":              {debianPackage(packed(t, archive(t, distribution(t))))[:100], "no whole Debian package"},
		"odd member":               {[]byte(arMagic + strings.Repeat("x", 60)), "a member has no size"},
		"cut gzip":                 {packed(t, archive(t, distribution(t)))[:300], "cut off"},
	} {
		if _, err := Read(opened(c.content)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %q", name, err, c.want)
		}
	}
	if _, err := Read(func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(archive(t, distribution(t))), iotest.ErrReader(image.ErrUntrusted))), nil
	}); !errors.Is(err, image.ErrUntrusted) {
		t.Errorf("an error at the end of the source: %v", err)
	}
}

// A module that is missing is named, with the one that needs it.
func TestKernel_MissingModules(t *testing.T) {
	for module, want := range map[string]string{
		"drivers/block/virtio_blk": "has no module virtio_blk", "fs/jbd2/jbd2": "for the module ext4: the kernel 6.1-a has no module jbd2",
		"drivers/firmware/qemu_fw_cfg": "has no module qemu_fw_cfg",
	} {
		files := distribution(t)
		delete(files, release+"kernel/"+module+".ko")
		k, err := Read(opened(archive(t, files)))
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Write(io.Discard, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s: %v", module, err)
		}
	}
}

// A kernel whose modules are in another package is told from one without a module.
func TestKernel_ModulesInAnotherPackage(t *testing.T) {
	k, err := Read(opened(rpmPackage(t, map[string]string{release + "vmlinuz": string(kernelFor("amd64")), release + "modules.builtin": "kernel/fs/ext4/ext4.ko\n"}, packed)))
	if err != nil {
		t.Fatal(err)
	}
	want := "the package has the kernel 6.1-a without its modules (lib/modules/6.1-a), of which a machine needs virtio_pci. RPM packages have them in kernel-modules-core"
	if err := k.Write(io.Discard, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

// Little that unpacks to much is refused before it takes the memory.
func TestKernel_UnpackedModulesAreLimited(t *testing.T) {
	files := distribution(t)
	delete(files, release+"kernel/fs/ext4/ext4.ko")
	files[release+"kernel/fs/ext4/ext4.ko.gz"] = string(packed(t, append(moduleOf(t, ""), make([]byte, maxModules)...)))
	k, err := Read(opened(archive(t, files)))
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Write(io.Discard, nil); !errors.Is(err, image.ErrUntrusted) || !strings.Contains(err.Error(), "more than 64 MiB when they are unpacked, with ext4") {
		t.Errorf("%v", err)
	}
}

// The limit is that of all layers together, also of what those above hide.
func TestReadLayers_AreLimited(t *testing.T) {
	found := files{content: map[string][]byte{}, kept: maxKept - entryCost - 100}
	above := files{content: map[string][]byte{}, kept: found.kept}
	if err := above.keep("boot/vmlinuz-1", strings.NewReader(strings.Repeat("x", 90))); err != nil {
		t.Fatal(err)
	}
	found.put(above)
	links := files{content: map[string][]byte{}, kept: maxKept - 100, sought: map[string]bool{}}
	if err := links.addArchive(bytes.NewReader(linked(t, distribution(t), func(string) bool { return false }, func(string) bool { return true }))); !errors.Is(err, image.ErrUntrusted) {
		t.Errorf("links: %v", err)
	}
	empty := files{content: map[string][]byte{}, kept: maxKept - entryCost + 1}
	if err := empty.keep("boot/vmlinuz-1", strings.NewReader("")); !errors.Is(err, image.ErrUntrusted) {
		t.Errorf("empty files: %v", err)
	}
	next := files{content: map[string][]byte{}, kept: found.kept}
	if err := next.keep("boot/vmlinuz-2", strings.NewReader(strings.Repeat("x", 90))); !errors.Is(err, image.ErrUntrusted) {
		t.Errorf("%v", err)
	}
}

// Images of ostree have hard links to its objects, in the same layer and in layers below, which those above may hide.
func TestReadLayers_HardLinks(t *testing.T) {
	files := distribution(t)
	isKernel := func(name string) bool { return name == "boot/vmlinuz-6.1-a" }
	isModule := func(name string) bool { return !isKernel(name) }
	all := func(string) bool { return true }
	none := func(string) bool { return false }
	hidden := archive(t, map[string]string{"sysroot/.wh.ostree": ""})
	for name, layers := range map[string][][]byte{
		"in one layer":        {linked(t, files, all, all), hidden},
		"in layers below":     {linked(t, files, all, none), linked(t, files, none, all), hidden},
		"in two layers":       {linked(t, files, isKernel, none), linked(t, files, isModule, all)},
		"beside plain files":  {linked(t, files, isKernel, isKernel), archive(t, files)},
		"to what is replaced": {linked(t, files, all, all), archive(t, map[string]string{"sysroot/ostree/repo/objects/boot-vmlinuz-6.1-a.file": "other"})},
	} {
		var opens []opener
		reads := 0
		for _, layer := range layers {
			opens = append(opens, func() (io.ReadCloser, error) { reads++; return opened(layer)() })
		}
		k, err := ReadLayers(opens)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := initrdOf(t, k)[moduleList]; k.Release != "6.1-a" || len(k.Image) != 4<<10 || !strings.Contains(got, "ext4.ko") || reads > 3*len(layers) {
			t.Errorf("%s: %s of %d bytes loads %q, after %d reads", name, k.Release, len(k.Image), got, reads)
		}
	}
	odd := linked(t, files, none, all)
	if _, err := ReadLayers([]opener{opened(odd), opened(odd)}); err == nil || !strings.Contains(err.Error(), "there is no kernel in it") {
		t.Errorf("links to nothing: %v", err)
	}
	if _, err := ReadLayers([]opener{opened(archive(t, files)), opened([]byte("no archive, but a text"))}); err == nil || !strings.Contains(err.Error(), "layer 2 of 2: ") {
		t.Errorf("a layer that is none: %v", err)
	}
}

func TestReadLayers(t *testing.T) {
	other := map[string]string{"boot/vmlinuz-6.2": string(kernelFor("arm64")), "boot/.wh.vmlinuz-6.1-a": "", "lib/modules/.wh.6.1-a": ""}
	opaque := map[string]string{"boot/vmlinuz-6.2": string(kernelFor("arm64")), "boot/.wh..wh..opq": "", "lib/.wh.modules": ""}
	for name, above := range map[string]map[string]string{"whiteouts": other, "opaque folder": opaque} {
		var layers []func() (io.ReadCloser, error)
		for _, files := range []map[string]string{distribution(t), above} {
			layers = append(layers, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive(t, files))), nil })
		}
		k, err := ReadLayers(layers)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if k.Architecture != "arm64" || k.Release != "6.2" || len(k.modules) != 0 {
			t.Errorf("%s: %s %s with %d modules", name, k.Architecture, k.Release, len(k.modules))
		}
	}
}
