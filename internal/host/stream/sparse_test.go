package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"
)

// file is a Sink that records its calls.
type file struct {
	bytes.Buffer
	written int64
}

func (f *file) Write(p []byte) (int, error) {
	f.written += int64(len(p))
	return f.Buffer.Write(p)
}

func (f *file) Skip(n int64) error {
	_, err := f.Buffer.Write(make([]byte, n))
	return err
}

func TestCopySparse(t *testing.T) {
	full := bytes.Repeat([]byte{7}, blockSize)
	empty := make([]byte, blockSize)
	for name, c := range map[string]struct {
		parts   [][]byte
		written int64
	}{
		"nothing":                    {nil, 0},
		"data only":                  {[][]byte{full, full}, 2 * blockSize},
		"holes only":                 {[][]byte{empty, empty}, 0},
		"a hole between":             {[][]byte{full, empty, empty, full}, 2 * blockSize},
		"a hole at the end":          {[][]byte{full, empty}, blockSize},
		"a hole that is not a block": {[][]byte{full, empty[:10]}, blockSize},
		"data that is not a block":   {[][]byte{empty, full[:10]}, 10},
		"a zero among data":          {[][]byte{full[:10], empty[:10], full}, blockSize + 20},
	} {
		t.Run(name, func(t *testing.T) {
			want := bytes.Join(c.parts, nil)
			for _, r := range []io.Reader{bytes.NewReader(want), iotest.OneByteReader(bytes.NewReader(want))} {
				var f file
				last := int64(0)
				n, err := CopySparse(&f, r, func(done int64) { last = done })
				if err != nil || n != int64(len(want)) || last != n || !bytes.Equal(f.Bytes(), want) || f.written != c.written {
					t.Errorf("%d bytes and %v; %d were written, not %d", n, err, f.written, c.written)
				}
			}
		})
	}
}

func TestCopySparse_ReportsProgress(t *testing.T) {
	// Some of these are the end of some reader, but not of the image.
	for _, broken := range []error{
		errors.New("the line went down"), io.ErrUnexpectedEOF, fmt.Errorf("asked again: %w", io.ErrUnexpectedEOF), fmt.Errorf("asked again: %w", io.EOF),
	} {
		for _, length := range []int64{3 * blockSize, 3*blockSize + 1} {
			r := io.MultiReader(bytes.NewReader(make([]byte, length)), iotest.ErrReader(broken))
			if n, err := CopySparse(&file{}, r, func(int64) {}); n != length || !errors.Is(err, broken) {
				t.Errorf("%d bytes and %v", n, err)
			}
		}
	}
}
