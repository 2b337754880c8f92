package iscsi

import "crypto/sha256"

func (t *Target) inquiry(u *unit, cdb []byte) (operation, error) {
	const vitalProductData = 1
	allocated := uint32(be.Uint16(cdb[3:]))
	if cdb[1]&vitalProductData == 0 {
		if cdb[2] != 0 {
			return operation{}, errField
		}
		b := make([]byte, 96)
		b[2], b[3], b[4], b[7] = 6, 0x12, 96-5, 2 // SPC-4; queues commands
		copy(b[8:], vendor+"VOLUME          1   ")
		for i, version := range []uint16{0x00a0, 0x0960, 0x0460, 0x04c0} { // SAM-5, iSCSI, SPC-4, SBC-3
			be.PutUint16(b[58+2*i:], version)
		}
		if u == nil {
			b[0] = 0x7f
		}
		return replyOf(b, allocated)
	}
	if u == nil {
		return operation{}, errNoUnit
	}
	page, ok := u.vitalProductData(cdb[2])
	if !ok {
		return operation{}, errField
	}
	return replyOf(append(be.AppendUint16([]byte{0, cdb[2]}, uint16(len(page))), page...), allocated)
}

const vendor = "VIRTCLM "

// vitalProductData is a page without its header.
func (u *unit) vitalProductData(page byte) ([]byte, bool) {
	switch page {
	case 0x00:
		return []byte{0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2}, true
	case 0x80:
		return []byte(u.Serial), true
	case 0x83:
		const locallyAssigned, binary, ascii, naa, byVendor = 0x30, 1, 2, 3, 1
		sum := sha256.Sum256([]byte(u.Serial))
		id := append([]byte{locallyAssigned | sum[0]&0xf}, sum[1:8]...)
		b := append([]byte{binary, naa, 0, byte(len(id))}, id...)
		b = append(b, ascii, byVendor, 0, byte(len(vendor)+len(u.Serial)))
		return append(append(b, vendor...), u.Serial...), true
	case 0xb0: // block limits
		b := make([]byte, 60)
		b[0] = 1 // WRITE SAME needs a number of blocks
		be.PutUint16(b[2:], 1<<granule)
		be.PutUint32(b[8:], segmentSize/BlockSize)
		if u.writable != nil {
			be.PutUint32(b[16:], maxUnmap)
			be.PutUint32(b[20:], maxDescriptors)
			be.PutUint32(b[24:], 1<<granule)
			be.PutUint64(b[32:], maxSame)
		}
		return b, true
	case 0xb1: // block device characteristics: it does not rotate
		return append([]byte{0, 1}, make([]byte, 58)...), true
	case 0xb2: // logical block provisioning
		const unmap, same16, same10, unmappedIsZero, thin = 0x80, 0x40, 0x20, 0x04, 2
		if u.writable == nil {
			return []byte{0, unmappedIsZero, thin, 0}, true
		}
		return []byte{0, unmap | same16 | same10 | unmappedIsZero, thin, 0}, true
	}
	return nil, false
}

func (u *unit) modeSense(cdb []byte, allocated uint32, isTen bool) (operation, error) {
	const caching, control, all = 0x08, 0x0a, 0x3f
	const changeable, saved = 1, 3
	page, subpage, which := cdb[2]&0x3f, cdb[3], cdb[2]>>6
	var pages []byte
	if page == caching || page == all {
		pages = append(pages, caching, 18)
		pages = append(pages, make([]byte, 18)...)
		if which != changeable && u.writable != nil {
			pages[2] = 4 // writes are cached
		}
	}
	if page == control || page == all {
		at := len(pages)
		pages = append(pages, control, 10)
		pages = append(pages, make([]byte, 10)...)
		if which != changeable {
			pages[at+3] = 0x10 // commands are reordered
		}
	}
	switch {
	case len(pages) == 0 || subpage != 0 && subpage != 0xff:
		return operation{}, errField
	case which == saved:
		return operation{}, errSaving
	}
	flags := byte(0x10) // it knows forced unit access
	if u.writable == nil {
		flags |= 0x80
	}
	if isTen {
		return replyOf(append([]byte{0, byte(len(pages) + 6), 0, flags, 0, 0, 0, 0}, pages...), allocated)
	}
	return replyOf(append([]byte{byte(len(pages) + 3), 0, flags, 0}, pages...), allocated)
}
