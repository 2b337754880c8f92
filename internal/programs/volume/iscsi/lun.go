package iscsi

func (t *Target) reportLUNs(cdb []byte) (operation, error) {
	allocated := be.Uint32(cdb[6:])
	if cdb[2] > 2 || allocated < 16 {
		return operation{}, errField
	}
	b := make([]byte, 8)
	if cdb[2] != 1 { // the well known ones, of which there are none
		for _, number := range t.numbers() {
			entry := [8]byte{}
			be.PutUint16(entry[:], number)
			if number > 0xff {
				entry[0] |= flatSpace
			}
			b = append(b, entry[:]...)
		}
	}
	be.PutUint32(b, uint32(len(b)-8))
	return replyOf(b, allocated)
}

// flatSpace is the addressing method of LUNs above 255.
const flatSpace = 0x40

// MaxLUN is the highest number of a LUN.
const MaxLUN = 0x3fff

// lunOf reads the number of a LUN (SAM, single level).
func lunOf(b []byte) (number uint16, ok bool) {
	number = be.Uint16(b)
	isFlat := b[0]>>6 == 1
	return number & MaxLUN, (isFlat || b[0] == 0) && be.Uint16(b[2:]) == 0 && be.Uint32(b[4:]) == 0
}
