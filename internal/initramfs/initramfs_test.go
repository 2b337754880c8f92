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
	for name, content := range map[string][]byte{
		"tar": archive(t, files), "tar.gz": packed(t, archive(t, files)), "Debian package": debianPackage(packed(t, archive(t, files))),
		"below usr": archive(t, merged), "kernel in two places": archive(t, inModules),
	} {
		k, err := Read(bytes.NewReader(content))
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
		k, err := Read(bytes.NewReader(content))
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
		"no kernel": {without(func(f map[string]string) { delete(f, "boot/vmlinuz-6.1-a") }), "there is no kernel in it"},
		"two kernels": {without(func(f map[string]string) {
			f["boot/vmlinuz-6.2"] = f["boot/vmlinuz-6.1-a"]
			f["lib/modules/6.2/kernel/fs/ext4/ext4.ko"] = ""
		}), "it has the kernels boot/vmlinuz-6.1-a and boot/vmlinuz-6.2"},
		"for another architecture": {without(func(f map[string]string) { f["boot/vmlinuz-6.1-a"] = "\x7fELF" + strings.Repeat("\x00", 60) }), "another architecture"},
		"cut package":              {debianPackage(packed(t, archive(t, distribution(t))))[:100], "no whole Debian package"},
		"odd member":               {[]byte(arMagic + strings.Repeat("x", 60)), "a member has no size"},
		"cut gzip":                 {packed(t, archive(t, distribution(t)))[:300], "cut off"},
	} {
		if _, err := Read(bytes.NewReader(c.content)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %q", name, err, c.want)
		}
	}
	if _, err := Read(io.MultiReader(bytes.NewReader(archive(t, distribution(t))), iotest.ErrReader(image.ErrUntrusted))); !errors.Is(err, image.ErrUntrusted) {
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
		k, err := Read(bytes.NewReader(archive(t, files)))
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Write(io.Discard, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s: %v", module, err)
		}
	}
}

// Little that unpacks to much is refused before it takes the memory.
func TestKernel_UnpackedModulesAreLimited(t *testing.T) {
	files := distribution(t)
	delete(files, release+"kernel/fs/ext4/ext4.ko")
	files[release+"kernel/fs/ext4/ext4.ko.gz"] = string(packed(t, append(moduleOf(t, ""), make([]byte, maxModules)...)))
	k, err := Read(bytes.NewReader(archive(t, files)))
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Write(io.Discard, nil); !errors.Is(err, image.ErrUntrusted) || !strings.Contains(err.Error(), "more than 64 MiB when they are unpacked, with ext4") {
		t.Errorf("%v", err)
	}
}

// The limit is that of all layers together, also of what those above hide.
func TestReadLayers_AreLimited(t *testing.T) {
	found := files{kept: maxKept - 100}
	above := files{kept: found.kept}
	if err := above.keep("boot/vmlinuz-1", strings.NewReader(strings.Repeat("x", 90))); err != nil {
		t.Fatal(err)
	}
	found.addLayer(above)
	next := files{kept: found.kept}
	if err := next.keep("boot/vmlinuz-2", strings.NewReader(strings.Repeat("x", 90))); !errors.Is(err, image.ErrUntrusted) {
		t.Errorf("%v", err)
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
