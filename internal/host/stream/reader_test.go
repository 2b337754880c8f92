package stream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/digitalocean/go-libvirt"
)

// hole is a part of a download.
func hole(bytes int64) packet {
	var e encoder
	e.long(uint64(bytes))
	e.word(0)
	return packet{kind: kindHole, status: statusContinue, body: e}
}

func TestReader_DataAndHoles(t *testing.T) {
	full := bytes.Repeat([]byte{7}, blockSize)
	for name, c := range map[string]struct {
		parts []packet
		want  []byte
		// written is what is no hole in a copy.
		written int64
	}{
		"nothing":                   {nil, nil, 0},
		"data only":                 {[]packet{data(full[:10]), data(full[10:]), data(full)}, bytes.Repeat(full, 2), 2 * blockSize},
		"a hole only":               {[]packet{hole(3*blockSize + 5)}, make([]byte, 3*blockSize+5), 0},
		"a hole at the beginning":   {[]packet{hole(9 * blockSize), data(full)}, append(make([]byte, 9*blockSize), full...), blockSize},
		"a hole at the end":         {[]packet{data(full), hole(9 * blockSize)}, append(bytes.Clone(full), make([]byte, 9*blockSize)...), blockSize},
		"holes one after the other": {[]packet{hole(blockSize), hole(blockSize + 1), data(full[1:])}, append(make([]byte, 2*blockSize+1), full[1:]...), blockSize},
		"a hole within a block": {
			[]packet{data(full[:4096]), hole(4096), data(full[8192:])}, append(append(bytes.Clone(full[:4096]), make([]byte, 4096)...), full[8192:]...), blockSize,
		},
		"zeros that are no hole": {[]packet{data(make([]byte, 2*blockSize)), data(full)}, append(make([]byte, 2*blockSize), full...), blockSize},
	} {
		t.Run(name, func(t *testing.T) {
			for early := range 2 {
				d := &daemon{parts: append(c.parts, data(nil)), early: early}
				r, err := opened(t, d).Read(disk, 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				var f file
				n, err := CopySparse(&f, r, func(int64) {})
				if err != nil || n != int64(len(c.want)) || !bytes.Equal(f.Bytes(), c.want) || f.written != c.written {
					t.Errorf("%d bytes of %d, %d of them written: %v", n, len(c.want), f.written, err)
				}
				if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
					t.Errorf("after the end it reads %d bytes: %v", n, err)
				}
			}
		})
	}
}

// A terabyte of a hole is neither held in memory, nor searched for data.
func TestReader_LongHoleTakesNoTime(t *testing.T) {
	const long = 1 << 50
	r, err := opened(t, &daemon{parts: []packet{data([]byte("data")), hole(long), data(nil)}}).Read(disk, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var at length
	if n, err := CopySparse(&at, r, func(int64) {}); err != nil || n != long+4 || at != long+4 {
		t.Errorf("%d bytes, and %d were copied: %v", n, at, err)
	}
}

// length is a Sink that only counts.
type length int64

func (l *length) Write(p []byte) (int, error) {
	*l += length(len(p))
	return len(p), nil
}

func (l *length) Skip(n int64) error {
	*l += length(n)
	return nil
}

// Each premature end of a download is an error that contains the cause, and never io.EOF.
func TestReader_Ends(t *testing.T) {
	for name, c := range map[string]struct {
		last packet
		want string
	}{
		"the storage fails":       {packet{kind: kindStream, status: statusError, body: refusal("Input/output error")}, "Input/output error"},
		"the call is refused":     {packet{kind: kindReply, status: statusError, body: refusal("no storage vol")}, "no storage vol"},
		"a hole without a length": {packet{kind: kindHole, status: statusContinue, body: make([]byte, 7)}, "none of libvirt's"},
		"a hole of minus 1 byte":  {hole(-1), "none of libvirt's"},
		"it hangs up":             {packet{}, libvirt.ErrInterrupted.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			d := &daemon{parts: []packet{data([]byte("data")), hole(1000)}}
			if c.last.kind != 0 {
				d.parts = append(d.parts, c.last)
			}
			r, err := opened(t, d).Read(disk, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(r, make([]byte, 1004)); err != nil {
				t.Fatal(err)
			}
			if c.last.kind == 0 {
				_ = d.conn.Close()
			}
			if _, end, err := ReadFull(r, make([]byte, 1)); err == nil || end || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestReader_StalledOrCanceled(t *testing.T) {
	gone := errors.New("Ctrl-C")
	for cancels, want := range map[bool]error{false: ErrStalled, true: gone} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			c, err := Open(ctx, (&daemon{parts: []packet{data([]byte("data"))}}).dial(t), "qemu:///system")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			r, err := c.Read(disk, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if cancels {
				go cancel(gone)
			}
			if _, err := io.ReadAll(r); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}
