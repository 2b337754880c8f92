package rootfs_test

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/rootfs"
)

// FuzzApply applies what may be two layers. A layer that is not refused leaves a faultless file system, and one that can be opened.
func FuzzApply(f *testing.F) {
	null := tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}
	below := archive(f, dir("d"), tar.Header{Name: "d/a", Size: 100}, link("d/b", "d/a"), symlink("s", "d"), null)
	for _, above := range [][]tar.Header{
		{{Name: "s/c", Size: 5000}, {Name: ".wh.null"}},
		{{Name: "d/.wh..wh..opq"}, {Name: "d/a"}, dir("s")},
		{withAttributes(map[string]string{"user.a": "b"}), link("hard", "s/b"), symlink("long", strings.Repeat("t", 80))},
		{dir("./"), {Name: "fifo", Typeflag: tar.TypeFifo}, {Name: ".wh.d"}, {Name: "d"}},
	} {
		f.Add(below.Bytes(), archive(f, above...).Bytes())
	}
	check, err := exec.LookPath("e2fsck")
	if err != nil {
		f.Log("without e2fsck, only what Go sees is tested")
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		is := rootfs.New([16]byte{1})
		var images []io.ReaderAt
		raw := filepath.Join(t.TempDir(), "raw")
		for n, layer := range [][]byte{one, two} {
			image := bytes.NewBuffer(make([]byte, rootfs.HeadSize))
			backing := ""
			if n > 0 {
				backing = fmt.Sprint("layer-", n)
			}
			head, err := is.Apply(bytes.NewReader(summed(layer)), image, backing)
			if err != nil {
				return
			}
			copy(image.Bytes(), head)
			images = append(images, bytes.NewReader(image.Bytes()))
			if _, err := rootfs.Open([16]byte{1}, images); err != nil {
				t.Fatal(err)
			}
			if check == "" {
				continue
			}
			flatten(t, image.Bytes(), raw)
			if out, err := exec.CommandContext(t.Context(), check, "-fn", raw).CombinedOutput(); err != nil {
				t.Fatalf("e2fsck: %v: %s", err, out)
			}
		}
	})
}

// summed is a layer whose blocks have the checksums of headers, which no fuzzer finds.
func summed(layer []byte) []byte {
	layer = bytes.Clone(layer)
	for block := range len(layer) / 512 {
		b := layer[block*512:][:512]
		if bytes.Equal(b, make([]byte, 512)) {
			continue
		}
		copy(b[148:], "        ")
		sum := 0
		for _, c := range b {
			sum += int(c)
		}
		copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	}
	return layer
}

// flatten writes the clusters of an image into a raw one, over those of the layers below.
func flatten(t *testing.T, image []byte, raw string) {
	t.Helper()
	out, err := os.OpenFile(raw, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	if err := out.Truncate(rootfs.Size); err != nil {
		t.Fatal(err)
	}
	flattenTo(t, image, out)
}

func flattenTo(t *testing.T, image []byte, out io.WriterAt) {
	t.Helper()
	be := binary.BigEndian
	const offset = 1<<56 - 1<<9
	level1 := image[be.Uint64(image[40:]):]
	for i := range be.Uint32(image[36:]) {
		at := be.Uint64(level1[i*8:]) & offset
		if at == 0 {
			continue
		}
		for k := range 8192 {
			entry := be.Uint64(image[at+uint64(k)*8:])
			cluster := make([]byte, 64<<10)
			switch {
			case entry == 0:
				continue
			case entry != 1:
				copy(cluster, image[entry&offset:])
			}
			if _, err := out.WriteAt(cluster, (int64(i)*8192+int64(k))<<16); err != nil {
				t.Fatal(err)
			}
		}
	}
}
