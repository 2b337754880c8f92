package image

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
)

// MaxUnpacked is how many bytes an image has at most, unpacked, where nothing says less: a bomb must end somewhere.
const MaxUnpacked = 1 << 40

// What unpacking may take of memory, in bytes: an archive says itself how far back it refers, and would have it allocated. All
// levels of xz and zstd stay below these without --lzma2=dict and --long.
const (
	maxDictionary = 64 << 20
	maxWindow     = 128 << 20
)

// headSize is how much of a file tells what it is: the magic of tar archives is at 257.
const headSize = 512

// unpack writes an image out of what it may be packed in, of at most limit bytes; a limit of 0 is MaxUnpacked. It reads all of
// packed, and fails if more follows than one archive, or if that holds another.
func unpack(w io.Writer, packed io.Reader, limit int64) error {
	in := &source{r: packed}
	raw := bufio.NewReaderSize(in, 64<<10)
	out, packing, err := decode(raw, in)
	if err != nil {
		return err
	}
	defer out.Close()
	content := raw
	if packing != "" {
		content = bufio.NewReaderSize(out, 64<<10)
	}
	if err := checkContent(content, packing != ""); err != nil {
		return err
	}
	_, err = io.Copy(w, &limited{r: content, limit: cmp.Or(limit, MaxUnpacked), tooMuch: "unpacked, it has more than %d bytes. If that is right, raise size"})
	return err
}

// source remembers the error of what is read: a decoder may make another one of it.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// limited refuses more bytes than it was told.
type limited struct {
	r           io.Reader
	limit, read int64
	// what there is too much of, and what to do, goes into the error.
	tooMuch string
}

func (l *limited) Read(p []byte) (int, error) {
	// One byte more than there may be, so that the end is seen where there is nothing more.
	n, err := l.r.Read(p[:min(int64(len(p)), l.limit-l.read+1)])
	if l.read += int64(n); l.read > l.limit {
		return 0, fmt.Errorf("%w: "+l.tooMuch, ErrUntrusted, l.limit)
	}
	return n, err
}

// decode tells by its magic what a file is packed with, and unpacks it; packing is empty where it is not packed.
func decode(raw *bufio.Reader, in *source) (out *decoder, packing string, err error) {
	head, err := raw.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", err
	}
	d := &decoder{in: in, packing: packingOf(head)}
	switch d.packing {
	case "gzip":
		d.r, err = gzip.NewReader(raw)
	case "xz":
		d.r, err = xz.NewReader(raw, maxDictionary)
	case "zstd":
		var z *zstd.Decoder
		// One at a time: it needs a window for each, and has no goroutines then.
		z, err = zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			d.r, d.close = z, z.Close
		}
	default:
		d.r, err = raw, nil
	}
	if err != nil {
		return nil, "", d.explain(err)
	}
	return d, d.packing, nil
}

// packingOf is empty for what is not packed.
func packingOf(head []byte) string {
	switch {
	case has(head, 0, "\x1f\x8b"):
		return "gzip"
	case has(head, 0, "\xfd7zXZ\x00"):
		return "xz"
	case has(head, 0, "\x28\xb5\x2f\xfd"):
		return "zstd"
	case has(head, 1, "\x2a\x4d\x18") && head[0]&0xf0 == 0x50: // one that begins with a frame to be skipped, as pzstd's
		return "zstd"
	}
	return ""
}

// decoder explains what is wrong with an archive.
type decoder struct {
	in      *source
	packing string
	r       io.Reader
	close   func()
}

func (d *decoder) Close() {
	if d.close != nil {
		d.close()
	}
}

// Read does not trust decoders to be right about all that an archive can hold: a panic would end the provider in the middle of
// an apply.
func (d *decoder) Read(p []byte) (n int, err error) {
	defer func() {
		if why := recover(); why != nil {
			n, err = 0, fmt.Errorf("%w: its %s archive can't be read: %v", ErrUntrusted, d.packing, why)
		}
	}()
	if n, err = d.r.Read(p); err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	return n, d.explain(err)
}

func (d *decoder) explain(err error) error {
	switch {
	case d.in.err != nil:
		return d.in.err
	case errors.Is(err, xz.ErrMemlimit):
		return fmt.Errorf("%w: unpacking it needs an xz dictionary of more than %d MiB. Pack it with xz -9 or less", ErrUntrusted, maxDictionary>>20)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fmt.Errorf("%w: unpacking it needs a zstd window of more than %d MiB. Pack it without --long", ErrUntrusted, maxWindow>>20)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: its %s archive is cut off", ErrUntrusted, d.packing)
	}
	return fmt.Errorf("%w: its %s archive is broken, or something follows it: %w", ErrUntrusted, d.packing, err)
}

// foreign is content that holds an image at best, and is none.
var foreign = []struct {
	offset int
	magic  string
	what   string
}{
	{257, "ustar", "a tar archive"},
	{0, "PK\x03\x04", "a zip archive"},
	{0, "PK\x05\x06", "an empty zip archive"},
	{0, "7z\xbc\xaf\x27\x1c", "a 7z archive"},
	{0, "Rar!\x1a\x07", "a RAR archive"},
	{0, "BZh", "packed with bzip2"},
	{0, "LZIP", "packed with lzip"},
	{0, "\x04\x22\x4d\x18", "packed with lz4"},
	{0, "!<arch>\n", "an ar archive"},
	{0, "070701", "a cpio archive"},
	{0, "\xed\xab\xee\xdb", "an RPM package"},
}

// checkContent looks at what was unpacked, before any of it is passed on.
func checkContent(content *bufio.Reader, wasPacked bool) error {
	head, err := content.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(head) == 0 {
		return fmt.Errorf("%w: it is empty", ErrUntrusted)
	}
	if packing := packingOf(head); wasPacked && packing != "" {
		return fmt.Errorf("%w: it is packed twice, inside with %s. Unpack it once", ErrUntrusted, packing)
	}
	if isWebPage(head) {
		return fmt.Errorf("%w: it is a web page. If it was downloaded, the server answered with a web page instead of the image: check the URL, and whether one has to log in",
			ErrUntrusted)
	}
	for _, f := range foreign {
		if has(head, f.offset, f.magic) {
			return fmt.Errorf("%w: it is %s, not an image. Unpack it, and take the image that is in it. gzip, xz and zstd are unpacked here",
				ErrUntrusted, f.what)
		}
	}
	return nil
}

func isWebPage(head []byte) bool {
	text := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"))
	return bytes.HasPrefix(text, []byte("<!doctype html")) || bytes.HasPrefix(text, []byte("<html"))
}
