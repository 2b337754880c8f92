package rootfs

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// forged is the image of an empty layer, whose root is recorded otherwise.
func forged(t *testing.T, edit func(*counters, *change)) io.ReaderAt {
	t.Helper()
	var empty, b bytes.Buffer
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	try(tar.NewWriter(&empty).Close())
	head, err := New([16]byte{}).Apply(&empty, &b, "")
	try(err)
	record := head[headerLength+8:]
	at, length := binary.BigEndian.Uint64(record), binary.BigEndian.Uint64(record[8:])
	image := slices.Concat(head, b.Bytes())
	r, err := zstd.NewReader(bytes.NewReader(image[at:][:length]))
	try(err)
	defer r.Close()
	var from counters
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	try(err)
	decoder, encoder := json.NewDecoder(r), json.NewEncoder(w)
	try(decoder.Decode(&from))
	var files []change
	for {
		var c change
		if err := decoder.Decode(&c); errors.Is(err, io.EOF) {
			break
		}
		try(err)
		if c.Number == rootNumber {
			edit(&from, &c)
		}
		files = append(files, c)
	}
	try(encoder.Encode(from))
	for _, c := range files {
		try(encoder.Encode(c))
	}
	try(w.Close())
	image = append(image, packed.Bytes()...)
	record = image[headerLength+8:]
	binary.BigEndian.PutUint64(record, uint64(len(image)-packed.Len()))
	binary.BigEndian.PutUint64(record[8:], uint64(packed.Len()))
	sum := sha256.Sum256(packed.Bytes())
	copy(record[16:], sum[:])
	return bytes.NewReader(image)
}

// A record of files that Apply has not written is refused.
func TestOpen_RefusesForged(t *testing.T) {
	for name, edit := range map[string]func(*counters, *change){
		"as it is":          func(*counters, *change) {},
		"no number":         func(_ *counters, c *change) { c.Number = 0 },
		"a number too high": func(n *counters, c *change) { c.Number = n.NextNumber },
		"a long target":     func(_ *counters, c *change) { c.Target = make([]byte, maxPath+1) },
		"names of no files": func(_ *counters, c *change) { c.Names, c.Numbers = [][]byte{[]byte("a")}, []uint32{4000} },
		"names of a file": func(_ *counters, c *change) {
			c.Mode = typeRegular
			c.Names, c.Numbers = [][]byte{[]byte("a")}, []uint32{2}
		},
		"no directory":        func(_ *counters, c *change) { c.Mode = typeRegular },
		"blocks out of range": func(_ *counters, c *change) { c.Extents = []extent{{Start: blocks - 1, Count: 2}} },
		"more blocks":         func(n *counters, _ *change) { n.NextBlock = blocks + 1 },
		"more files":          func(n *counters, _ *change) { n.NextNumber = groups*groupInodes + 2 },
	} {
		_, err := Open([16]byte{}, []io.ReaderAt{forged(t, edit)})
		if name == "as it is" && err != nil || name != "as it is" && !errors.Is(err, errImage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
