package iscsi

import "fmt"

// sense is what SPC calls the sense key and the additional sense code.
type sense struct{ key, code, qualifier byte }

func (s sense) Error() string {
	return fmt.Sprintf("sense key %x, additional sense code %02x/%02x", s.key, s.code, s.qualifier)
}

// data is the sense data in the fixed format, after its length.
func (s sense) data() []byte {
	return []byte{0, 18, 0x70, 0, s.key, 0, 0, 0, 0, 10, 0, 0, 0, 0, s.code, s.qualifier, 0, 0, 0, 0}
}

var (
	errRead      = sense{0x3, 0x11, 0x00}
	errWrite     = sense{0x3, 0x0c, 0x00}
	errLength    = sense{0x5, 0x1a, 0x00}
	errOpcode    = sense{0x5, 0x20, 0x00}
	errRange     = sense{0x5, 0x21, 0x00}
	errField     = sense{0x5, 0x24, 0x00}
	errNoUnit    = sense{0x5, 0x25, 0x00}
	errParameter = sense{0x5, 0x26, 0x00}
	errSaving    = sense{0x5, 0x39, 0x00}
	errGrown     = sense{0x6, 0x2a, 0x09} // a unit attention
	errReadOnly  = sense{0x7, 0x27, 0x00}
	errNoSpace   = sense{0x7, 0x27, 0x07}
	errData      = sense{0xb, 0x47, 0x05}
)
