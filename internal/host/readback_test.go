package host

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host/stream"
)

// holed reads content, of which it knows the zeros ahead as a hole.
type holed struct{ content []byte }

func (h *holed) Read(p []byte) (int, error) {
	if len(h.content) == 0 {
		return 0, io.EOF
	}
	n := copy(p, h.content)
	h.content = h.content[n:]
	return n, nil
}

func (h *holed) SkipHole(unit int64) int64 {
	zeros := slices.IndexFunc(h.content, func(b byte) bool { return b != 0 })
	if zeros < 0 {
		zeros = len(h.content)
	}
	skipped := int64(zeros) / unit * unit
	h.content = h.content[skipped:]
	return skipped
}

// stretchesOf are those of what r has.
func stretchesOf(t *testing.T, r io.Reader) (all []stretch) {
	t.Helper()
	s := newSums(0, func(s stretch) { all = append(all, s) })
	if _, err := stream.CopySparse(s, r, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	s.end()
	return all
}

// A file system may store zeros that were a hole elsewhere, and the other way round.
func TestSums_OfContentAlone(t *testing.T) {
	const block = 64 << 10
	noise := bytes.Repeat([]byte("some data"), block)
	content := bytes.Join([][]byte{noise[:3*block], make([]byte, 5*block+17), noise[:100], make([]byte, block)}, nil)
	want := stretchesOf(t, bytes.NewReader(content))
	if !slices.Equal(stretchesOf(t, &holed{content}), want) {
		t.Error("it depends on what the reader knows of holes")
	}
	changed := func(at int, b byte) []byte {
		other := bytes.Clone(content)
		other[at] = b
		return other
	}
	for name, other := range map[string][]byte{
		"a byte of the data":     changed(2*block, 0),
		"a byte of the hole":     changed(4*block, 1),
		"a longer hole":          append(bytes.Clone(content), 0),
		"a shorter hole":         content[:len(content)-1],
		"data elsewhere":         slices.Insert(bytes.Clone(content), 3*block, make([]byte, block)...),
		"the data without holes": append(bytes.Clone(noise[:3*block]), noise[:100]...),
		"nothing":                nil,
	} {
		if slices.Equal(stretchesOf(t, bytes.NewReader(other)), want) {
			t.Errorf("%s: it is the same", name)
		}
	}
}
