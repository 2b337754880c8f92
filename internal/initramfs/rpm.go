package initramfs

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cavaliergopher/cpio"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// An RPM package has a lead, a header with signatures, another one that describes it, and an archive of cpio
// (https://rpm-software-management.github.io/rpm/manual/format_v4.html).
const (
	rpmMagic       = "\xed\xab\xee\xdb"
	rpmHeaderMagic = "\x8e\xad\xe8\x01"
	rpmLead        = 96
)

// addRPM adds the files of an RPM package.
func (f *files) addRPM(r io.Reader) error {
	broken := func(why error) error {
		return fmt.Errorf("%w: it is no whole RPM package with files that are packed with gzip, xz or zstd: %w", image.ErrUntrusted, why)
	}
	_, err := io.CopyN(io.Discard, r, rpmLead)
	if err = cmp.Or(err, skipHeader(r, 8), skipHeader(r, 1)); err != nil {
		return broken(err)
	}
	content, err := image.Unpack(r)
	if err != nil {
		return broken(err)
	}
	defer func() { _ = content.Close() }()
	for archive := cpio.NewReader(content); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return image.Drain(content)
		}
		if err == nil && h.Size < 0 {
			err = errors.New("a file has no size")
		}
		if err != nil {
			return broken(err)
		}
		name := withoutUsr(h.Name)
		if !h.Mode.IsRegular() || !isWanted(name) {
			continue
		}
		if err := f.keep(name, archive); err != nil {
			return err
		}
		if int64(len(f.content[name])) < h.Size {
			return broken(io.ErrUnexpectedEOF)
		}
	}
}

// skipHeader skips a header, which is padded.
func skipHeader(r io.Reader, alignment int64) error {
	head := make([]byte, 16)
	if _, err := io.ReadFull(r, head); err != nil {
		return err
	}
	if !bytes.HasPrefix(head, []byte(rpmHeaderMagic)) {
		return errors.New("a header is missing")
	}
	size := 16*int64(binary.BigEndian.Uint32(head[8:])) + int64(binary.BigEndian.Uint32(head[12:]))
	_, err := io.CopyN(io.Discard, r, (size+alignment-1)/alignment*alignment)
	return err
}
