package volume

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

const cluster = 64 << 10

// disk is the content of a disk of n clusters, of which every third is blank.
func disk(n int) []byte {
	random := rand.NewChaCha8([32]byte{1})
	content := make([]byte, n*cluster)
	for c := range n {
		if c%3 != 1 {
			_, _ = random.Read(content[c*cluster : (c+1)*cluster])
		}
	}
	return content
}

// qcow2Of is a qcow2 image of a disk, whose clusters are in the file in the order of the disk, or backwards. Compressed ones repeat a byte.
func qcow2Of(content []byte, backwards, compressed bool) []byte {
	size := (len(content) + cluster - 1) / cluster
	file := make([]byte, 5*cluster) // header, table of reference counts, a block of them, first and second-level table
	put := binary.BigEndian
	copy(file, "QFI\xfb")
	put.PutUint32(file[4:], 3)
	put.PutUint32(file[20:], 16)
	put.PutUint64(file[24:], uint64(len(content)))
	put.PutUint32(file[36:], 1)
	put.PutUint64(file[40:], 3*cluster)
	put.PutUint64(file[48:], cluster)
	put.PutUint32(file[56:], 1)
	put.PutUint32(file[96:], 4)
	put.PutUint32(file[100:], 104)
	put.PutUint64(file[cluster:], 2*cluster)
	put.PutUint64(file[3*cluster:], 4*cluster|1<<63)
	for n := range size {
		c := n
		if backwards {
			c = size - 1 - n
		}
		part := padTo(content[c*cluster:min((c+1)*cluster, len(content))], cluster)
		if isZero(part) {
			continue
		}
		entry, at := uint64(len(file))|1<<63, len(file)
		if compressed {
			var packed bytes.Buffer
			w, _ := flate.NewWriter(&packed, flate.BestSpeed)
			_, _ = w.Write(part)
			_ = w.Close()
			sectors := (at+packed.Len()-1)/sector - at/sector
			entry, part = uint64(at)|uint64(sectors)<<(62-(16-8))|1<<62, packed.Bytes()
		}
		put.PutUint64(file[4*cluster+8*c:], entry)
		file = append(file, part...)
	}
	return padTo(file, cluster)
}

func padTo(p []byte, unit int) []byte {
	return append(bytes.Clone(p), make([]byte, (unit-len(p)%unit)%unit)...)
}

// fillFile fills disk.img in a new folder, or in that of the claim.
func fillFile(t *testing.T, c Claim, r io.Reader, length int64) ([]byte, podwire.Filled, error) {
	t.Helper()
	if c.Path == "" {
		c.Path = inMemory(t)
	}
	f, err := c.fill(t.Context(), r, length, nil, noDigest)
	content, readErr := os.ReadFile(filepath.Join(c.Path, diskImage))
	if readErr != nil && err == nil {
		t.Fatal(readErr)
	}
	return content, f, err
}

func TestFill_Qcow2(t *testing.T) {
	content := disk(3 * windowSize / cluster)
	content = content[:len(content)-cluster/2] // the last cluster is cut off
	for name, is := range map[string]struct{ backwards, compressed, scratch bool }{
		"in order":                      {},
		"compressed":                    {compressed: true},
		"in order, with scratch space":  {scratch: true},
		"backwards, with scratch space": {backwards: true, scratch: true},
		"compressed backwards":          {backwards: true, compressed: true, scratch: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := Claim{}
			if is.scratch {
				c.Scratch = inMemory(t)
			}
			got, f, err := fillFile(t, c, bytes.NewReader(qcow2Of(content, is.backwards, is.compressed)), -1)
			if err != nil || !bytes.Equal(got, content) || f.Capacity != int64(len(content)) || f.Format != "qcow2" {
				t.Errorf("%v, %+v, equal: %v", err, f, bytes.Equal(got, content))
			}
			if is.scratch {
				if left, _ := os.ReadDir(c.Scratch); len(left) > 0 {
					t.Errorf("%v is left in the scratch space", left)
				}
			}
		})
	}
}

// Without scratch space, an image whose clusters are far from the order of the disk is refused, and the volume is not taken for filled.
func TestFill_NeedsScratch(t *testing.T) {
	content := disk(3 * windowSize / cluster)
	got, _, err := fillFile(t, Claim{}, bytes.NewReader(qcow2Of(content, true, false)), -1)
	if !errors.Is(err, ErrNeedsScratch) {
		t.Errorf("error %v", err)
	}
	if _, half := marked(got); !half {
		t.Errorf("the volume begins with %q", got[:min(64, len(got))])
	}
}

func TestFill_RefusedQcow2(t *testing.T) {
	whole := qcow2Of(disk(8), false, false)
	changed := func(change func(p []byte)) []byte {
		p := bytes.Clone(whole)
		change(p)
		return p
	}
	extension := func(kind uint32) []byte {
		return changed(func(p []byte) { binary.BigEndian.PutUint32(p[104:], kind); binary.BigEndian.PutUint32(p[108:], 8) })
	}
	for name, is := range map[string]struct {
		body  []byte
		early bool // before anything is written
	}{
		"a backing file":        {changed(func(p []byte) { binary.BigEndian.PutUint64(p[8:], 200); binary.BigEndian.PutUint32(p[16:], 4) }), true},
		"a data file":           {changed(func(p []byte) { p[79] |= 1 << 2 }), true},
		"encryption":            {changed(func(p []byte) { p[35] = 2 }), true},
		"bitmaps":               {extension(0x23852875), true},
		"too many bytes":        {changed(func(p []byte) { binary.BigEndian.PutUint64(p[24:], 1<<60) }), true},
		"a table beyond it":     {changed(func(p []byte) { binary.BigEndian.PutUint64(p[3*cluster:], 1<<40) }), false},
		"a cluster beyond it":   {changed(func(p []byte) { binary.BigEndian.PutUint64(p[4*cluster+16:], 1<<40) }), false},
		"subclusters":           {changed(func(p []byte) { p[79] |= 1 << 4 }), true},
		"it is cut off":         {whole[:len(whole)-cluster], false},
		"compressed into ruins": {changed(func(p []byte) { binary.BigEndian.PutUint64(p[4*cluster:], 1<<62|6*cluster) }), false},
	} {
		t.Run(name, func(t *testing.T) {
			folder := inMemory(t)
			got, _, err := fillFile(t, Claim{Path: folder, Scratch: inMemory(t)}, bytes.NewReader(is.body), -1)
			if err == nil {
				t.Fatal("it was taken")
			}
			if _, half := marked(got); half == is.early {
				t.Errorf("the volume begins with %q after: %v", got[:min(64, len(got))], err)
			}
			if name != "compressed into ruins" && !errors.Is(err, image.ErrUntrusted) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// The scratch space has only what is needed after its turn: of an image in the order of the disk, the tables.
func TestFill_InOrderNeedsLittleScratch(t *testing.T) {
	content := disk(6 * windowSize / cluster)
	for backwards, want := range map[bool]int{false: 5, true: 3 * windowSize / cluster} {
		v, err := openVolume(inMemory(t))
		if err != nil {
			t.Fatal(err)
		}
		file, err := scratchFile(inMemory(t))
		if err != nil {
			t.Fatal(err)
		}
		in := &streamReaderAt{r: bytes.NewReader(qcow2Of(content, backwards, false)), scratch: file}
		err = (&writer{ctx: t.Context(), volume: v}).clusters(in)
		kept := 0
		for _, blocks := range in.kept {
			kept += bits.OnesCount64(blocks)
		}
		if err := errors.Join(err, v.Close(), file.Close()); err != nil || (kept != want) && !backwards || kept < want {
			t.Errorf("%v: %v, %d blocks are kept", backwards, err, kept)
		}
	}
}

// Two parts of a disk in one cluster are no image that QEMU writes. What has gone from memory is not replaced by zeros.
func TestFill_SharedCluster(t *testing.T) {
	body := qcow2Of(disk(3*windowSize/cluster), false, false)
	last := 4*cluster + 8*(3*windowSize/cluster-1)
	copy(body[last:last+8], body[4*cluster:])
	if _, _, err := fillFile(t, Claim{Scratch: inMemory(t)}, bytes.NewReader(body), -1); !errors.Is(err, image.ErrUntrusted) {
		t.Errorf("error %v", err)
	}
}
