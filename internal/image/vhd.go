package image

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The footer of a VHD image, which a dynamic one also begins with.
const (
	vhdMagic      = "conectix"
	vhdFooter     = 512
	vhdType       = 60
	vhdFixed      = 2
	vhdQemuFormat = "vpc"
)

// withoutVHDFooter refuses a fixed VHD at its end: its guest would find the footer behind its disk, and a backup GPT that is not at the
// end.
type withoutVHDFooter struct {
	io.Reader
	last []byte
}

func (r *withoutVHDFooter) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.last = append(r.last, end(p[:n], vhdFooter)...)
	r.last = append(r.last[:0], end(r.last, vhdFooter)...)
	if errors.Is(err, io.EOF) && isFixedVHD(r.last) {
		err = fmt.Errorf("%w: it is a fixed VHD, as of Hyper-V and Azure: a raw disk with a footer behind it. %s", ErrUntrusted,
			Convert(vhdQemuFormat, "qcow2"))
	}
	return n, err
}

func isFixedVHD(last []byte) bool {
	return has(last, 0, vhdMagic) && len(last) == vhdFooter && binary.BigEndian.Uint32(last[vhdType:]) == vhdFixed
}
