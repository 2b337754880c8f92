package iscsi

import (
	"bytes"
	"slices"
)

// BlockSize is the size in bytes of a logical block.
const BlockSize = 512

const (
	// maxUnmap and maxSame are the most blocks of an UNMAP descriptor and of a WRITE SAME, maxDescriptors how many an UNMAP has.
	maxUnmap       = 1 << 20
	maxSame        = 1 << 18
	maxDescriptors = 16
	// granule is the number of blocks that is efficient to write and to unmap, as an exponent of 2.
	granule = 3
)

// kind is where the data of an operation comes from, or goes to.
type kind int

const (
	replies         kind = iota // it is there
	reads                       // comes from the disk
	writes                      // goes to the disk
	takesParameters             // goes to finish
)

// operation is what a CDB asks for.
type operation struct {
	kind kind
	// n bytes are read, written, taken or replied; the first two at an offset.
	off, n int64
	data   []byte
	// finish is done at the end, and may take time.
	finish func(parameters []byte) error
}

func (o operation) takesData() bool { return o.kind >= writes }

func replyOf(b []byte, allocated uint32) (operation, error) {
	b = b[:min(uint64(len(b)), uint64(allocated))]
	return operation{data: b, n: int64(len(b))}, nil
}

// The commands that are answered also without a unit, and before a unit attention.
const opInquiry, opReportLUNs, opRequestSense = 0x12, 0xa0, 0x03

// plan reads a CDB. The unit is nil if there is none of that number.
func (t *Target) plan(u *unit, cdb []byte) (operation, error) {
	switch cdb[0] {
	case opInquiry:
		return t.inquiry(u, cdb)
	case opReportLUNs:
		return t.reportLUNs(cdb)
	case opRequestSense:
		return replyOf(sense{}.data()[2:], uint32(cdb[4]))
	}
	if u == nil {
		return operation{}, errNoUnit
	}
	switch cdb[0] {
	case 0x00: // TEST UNIT READY
		return operation{}, nil
	case 0x1b: // START STOP UNIT
		if cdb[4]&2 != 0 {
			return operation{}, errField // nothing can be ejected
		}
		return operation{}, nil
	case 0x1e: // PREVENT ALLOW MEDIUM REMOVAL
		return operation{}, nil
	case 0x1a: // MODE SENSE (6)
		return u.modeSense(cdb, uint32(cdb[4]), false)
	case 0x5a: // MODE SENSE (10)
		return u.modeSense(cdb, uint32(be.Uint16(cdb[7:])), true)
	case 0x25: // READ CAPACITY (10)
		b := be.AppendUint32(nil, uint32(min(u.blocks()-1, 0xffffffff)))
		return replyOf(be.AppendUint32(b, BlockSize), 8)
	case 0x9e: // SERVICE ACTION IN (16)
		switch cdb[1] & 0x1f {
		case 0x10:
			return u.readCapacity16(cdb)
		case 0x12:
			return u.lbaStatus(cdb)
		}
		return operation{}, errField
	}
	return u.planBlocks(cdb)
}

// planBlocks reads a CDB that names blocks.
func (u *unit) planBlocks(cdb []byte) (operation, error) {
	lba, n := blocksOf(cdb)
	switch cdb[0] {
	case 0x08, 0x28, 0xa8, 0x88: // READ (6, 10, 12, 16)
		return u.transfer(reads, cdb, lba, n)
	case 0x0a, 0x2a, 0xaa, 0x8a: // WRITE (6, 10, 12, 16)
		o, err := u.transfer(writes, cdb, lba, n)
		const forceUnitAccess = 8
		if cdb[0] != 0x0a && cdb[1]&forceUnitAccess != 0 {
			o.finish = u.sync
		}
		return o, err
	case 0x35, 0x91: // SYNCHRONIZE CACHE (10, 16)
		if err := u.checkRange(lba, n); err != nil || u.writable == nil {
			return operation{}, err
		}
		return operation{finish: u.sync}, nil
	case 0x41, 0x93: // WRITE SAME (10, 16)
		return u.writeSame(cdb, lba, n)
	case 0x42: // UNMAP
		return u.unmap(cdb)
	}
	return operation{}, errOpcode
}

// blocksOf are the first logical block and the number of blocks of a CDB, by the group of its opcode.
func blocksOf(cdb []byte) (lba, n uint64) {
	switch cdb[0] >> 5 {
	case 0:
		n = uint64(cdb[4])
		if n == 0 {
			n = 256
		}
		return uint64(be.Uint32(cdb) & 0x1fffff), n
	case 4:
		return be.Uint64(cdb[2:]), uint64(be.Uint32(cdb[10:]))
	case 5:
		return uint64(be.Uint32(cdb[2:])), uint64(be.Uint32(cdb[6:]))
	}
	return uint64(be.Uint32(cdb[2:])), uint64(be.Uint16(cdb[7:]))
}

func (u *unit) blocks() uint64 { return uint64(u.Disk.Size()) / BlockSize }

func (u *unit) checkRange(lba, n uint64) error {
	if blocks := u.blocks(); lba > blocks || n > blocks-lba {
		return errRange
	}
	return nil
}

func (u *unit) transfer(k kind, cdb []byte, lba, n uint64) (operation, error) {
	isSix := cdb[0]>>5 == 0
	switch {
	case k == writes && u.writable == nil:
		return operation{}, errReadOnly
	case !isSix && cdb[1]>>5 != 0: // there is no protection information
		return operation{}, errField
	}
	return operation{kind: k, off: int64(lba) * BlockSize, n: int64(n) * BlockSize}, u.checkRange(lba, n)
}

func (u *unit) sync([]byte) error { return u.writable.Sync() }

func (u *unit) writeSame(cdb []byte, lba, n uint64) (operation, error) {
	const protect, anchor, obsolete, noData = 0xe0, 0x10, 0x06, 0x01
	switch {
	case u.writable == nil:
		return operation{}, errReadOnly
	case cdb[1]&(protect|anchor|obsolete) != 0 || cdb[1]&noData != 0 && cdb[0] != 0x93 || n == 0 || n > maxSame:
		return operation{}, errField
	}
	if err := u.checkRange(lba, n); err != nil {
		return operation{}, err
	}
	off, length := int64(lba)*BlockSize, int64(n)*BlockSize
	same := func(block []byte) error {
		if len(block) == 0 || bytes.Equal(block, make([]byte, BlockSize)) {
			return u.writable.Zero(off, length)
		}
		part := bytes.Repeat(block, int(min(n, 16)))
		for at := int64(0); at < length; at += int64(len(part)) {
			if _, err := u.writable.WriteAt(part[:min(int64(len(part)), length-at)], off+at); err != nil {
				return err
			}
		}
		return nil
	}
	if cdb[1]&noData != 0 {
		return operation{finish: same}, nil
	}
	return operation{kind: takesParameters, n: BlockSize, finish: same}, nil
}

func (u *unit) unmap(cdb []byte) (operation, error) {
	n := int64(be.Uint16(cdb[7:]))
	switch {
	case u.writable == nil:
		return operation{}, errReadOnly
	case cdb[1]&1 != 0: // anchored
		return operation{}, errField
	case n == 0:
		return operation{}, nil
	case n < 8:
		return operation{}, errLength
	case n > 8+16*maxDescriptors:
		return operation{}, errField
	}
	return operation{kind: takesParameters, n: n, finish: u.unmapAll}, nil
}

func (u *unit) unmapAll(list []byte) error {
	all := list[8:]
	all = all[:min(len(all), int(be.Uint16(list[2:])))/16*16]
	for each := range slices.Chunk(all, 16) {
		lba, n := be.Uint64(each), uint64(be.Uint32(each[8:]))
		if n > maxUnmap {
			return errParameter
		}
		if err := u.checkRange(lba, n); err != nil {
			return err
		}
	}
	for each := range slices.Chunk(all, 16) {
		if n := int64(be.Uint32(each[8:])); n > 0 {
			if err := u.writable.Zero(int64(be.Uint64(each))*BlockSize, n*BlockSize); err != nil {
				return err
			}
		}
	}
	return nil
}

func (u *unit) readCapacity16(cdb []byte) (operation, error) {
	const exponent, unmaps, unmappedIsZero = 13, 0x80, 0x40
	b := make([]byte, 32)
	be.PutUint64(b, u.blocks()-1)
	be.PutUint32(b[8:], BlockSize)
	b[exponent], b[14] = granule, unmaps|unmappedIsZero
	return replyOf(b, be.Uint32(cdb[10:]))
}

// lbaStatus is GET LBA STATUS with one descriptor.
func (u *unit) lbaStatus(cdb []byte) (operation, error) {
	const deallocated = 1
	lba, blocks := be.Uint64(cdb[2:]), u.blocks()
	if lba >= blocks {
		return operation{}, errRange
	}
	end, status := blocks, byte(0)
	if sparse, ok := u.Disk.(Sparse); ok {
		isData, to := sparse.Extent(int64(lba) * BlockSize)
		end = min(uint64(to+BlockSize-1)/BlockSize, blocks)
		if !isData && to/BlockSize > int64(lba) {
			end, status = min(uint64(to)/BlockSize, blocks), deallocated
		}
		end = max(end, lba+1)
	}
	b := make([]byte, 24)
	be.PutUint32(b, 20)
	be.PutUint64(b[8:], lba)
	be.PutUint32(b[16:], uint32(min(end-lba, 0xffffffff)))
	b[20] = status
	return replyOf(b, be.Uint32(cdb[10:]))
}
