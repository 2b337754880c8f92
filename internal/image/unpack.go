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

// MaxUnpacked is the default limit of an unpacked image, in bytes: it stops decompression bombs.
const MaxUnpacked = 1 << 40

// The memory limits of unpacking, in bytes: an archive itself declares how far back it refers, and so how much is allocated. All levels of
// xz and zstd stay below these limits without --lzma2=dict and --long.
const (
	maxDictionary = 64 << 20
	maxWindow     = 128 << 20
)

// headSize is how many bytes of a file are needed to determine its type: the magic of tar archives is at 257.
const headSize = 512

// smallest is how many bytes an image has at least: those of a sector.
const smallest = 512

// unpack writes the unpacked image, of at most limit bytes; 0 means MaxUnpacked. It reads all of packed, and fails if it is not a single
// archive, or if that contains another archive.
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
	image := &withoutVHDFooter{Reader: content}
	all := &limited{
		r: image, limit: cmp.Or(limit, MaxUnpacked),
		tooMuch: "unpacked, it has more than %d bytes, the most that is read for a volume of this size",
	}
	// w may be a pipe, for which few large writes are cheaper.
	_, err = io.CopyBuffer(w, all, make([]byte, 256<<10))
	return err
}

// asIs writes a file of at most limit bytes; 0 means MaxUnpacked.
func asIs(w io.Writer, file io.Reader, limit int64) error {
	content := bufio.NewReaderSize(file, 64<<10)
	head, err := content.Peek(headSize)
	if err == nil || errors.Is(err, io.EOF) {
		err = checkStandIn(head)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(w, &limited{r: content, limit: cmp.Or(limit, MaxUnpacked), tooMuch: "it has more than %d bytes"})
	return err
}

// source remembers the error of its reader, because a decoder may replace it.
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

// limited refuses to read more bytes than its limit.
type limited struct {
	r           io.Reader
	limit, read int64
	// tooMuch is the error, which says what exceeds the limit, and the remedy.
	tooMuch string
}

func (l *limited) Read(p []byte) (int, error) {
	// One more byte than allowed is read, so that the end is detected if there are no more.
	n, err := l.r.Read(p[:min(int64(len(p)), l.limit-l.read+1)])
	if l.read += int64(n); l.read > l.limit {
		return 0, fmt.Errorf("%w: "+l.tooMuch, ErrUntrusted, l.limit)
	}
	return n, err
}

// decode determines by its magic how a file is packed, and returns a decoder; packing is empty if it is not packed.
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
		// A concurrency of 1 needs only one window, and no goroutines.
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

// IsPacked reports whether what comes next is an archive that is unpacked here.
func IsPacked(r *bufio.Reader) bool {
	head, _ := r.Peek(headSize) // who reads on gets the error
	return packingOf(head) != ""
}

// packingOf returns how a file is packed; empty if it is not.
func packingOf(head []byte) string {
	switch {
	case has(head, 0, "\x1f\x8b"):
		return "gzip"
	case has(head, 0, "\xfd7zXZ\x00"):
		return "xz"
	case has(head, 0, "\x28\xb5\x2f\xfd"):
		return "zstd"
	case has(head, 1, "\x2a\x4d\x18") && head[0]&0xf0 == 0x50: // begins with a skippable frame, as those of pzstd
		return "zstd"
	}
	return ""
}

// decoder unpacks an archive, and explains its errors.
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

// Read converts panics of decoders, which an invalid archive may cause, to errors: a panic would end the provider in the middle of an
// apply.
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
		return fmt.Errorf("%w: unpacking it needs an xz dictionary of more than %d MiB. Pack it with xz -9 or less", ErrUntrusted,
			maxDictionary>>20)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fmt.Errorf("%w: unpacking it needs a zstd window of more than %d MiB. Pack it without --long", ErrUntrusted, maxWindow>>20)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: its %s archive is cut off", ErrUntrusted, d.packing)
	}
	return fmt.Errorf("%w: its %s archive is broken, or something follows it: %w", ErrUntrusted, d.packing, err)
}

// foreign is content that is no image, but may contain one.
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

// checkContent checks the unpacked content, before any of it is passed on.
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
	if err := checkStandIn(head); err != nil {
		return err
	}
	for _, f := range foreign {
		if has(head, f.offset, f.magic) {
			return fmt.Errorf("%w: it is %s, not an image. Unpack it, and take the image that is in it. gzip, xz and zstd are unpacked "+
				"here",
				ErrUntrusted, f.what)
		}
	}
	if len(head) < smallest {
		return fmt.Errorf("%w: it has %d bytes, and a disk has at least a sector of %d", ErrUntrusted, len(head), smallest)
	}
	return nil
}

// checkStandIn refuses what is fetched in place of a file.
func checkStandIn(head []byte) error {
	if isWebPage(head) {
		return fmt.Errorf("%w: it is a web page. If it was downloaded, the server answered with a web page instead of the image: check "+
			"the URL, and whether one has to log in",
			ErrUntrusted)
	}
	if has(head, 0, "version https://git-lfs.") { // https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
		return fmt.Errorf("%w: it is a pointer of Git LFS, not the file that it stands for. Get that (git lfs pull), or take the URL of "+
			"its content", ErrUntrusted)
	}
	return nil
}

func isWebPage(head []byte) bool {
	text := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"))
	return bytes.HasPrefix(text, []byte("<!doctype html")) || bytes.HasPrefix(text, []byte("<html"))
}

// Unpack returns a reader of what r has, unpacked if it is packed with gzip, xz or zstd. It may read more than the archive of r.
func Unpack(r io.Reader) (io.ReadCloser, error) {
	in := &source{r: r}
	d, _, err := decode(bufio.NewReaderSize(in, 64<<10), in)
	if err != nil {
		return nil, err
	}
	return unpacked{d}, nil
}

type unpacked struct{ *decoder }

func (u unpacked) Close() error {
	u.decoder.Close()
	return nil
}
