package rootfs

import (
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
)

// commit writes what the layer has changed of the metadata.
func (f *FileSystem) commit() error {
	if err := f.flush(); err != nil {
		return err
	}
	for _, n := range f.sorted() {
		if n.entries != nil {
			if err := f.writeDirectory(n); err != nil {
				return err
			}
		}
		if err := f.writeFile(n); err != nil {
			return err
		}
	}
	if f.layer == 1 {
		f.renderJournal()
	}
	f.renderGroups()
	return f.meta.write(f.out)
}

// sorted are the changed files by their numbers.
func (f *FileSystem) sorted() []*node {
	return slices.SortedFunc(maps.Keys(f.changed), func(a, b *node) int { return int(a.number) - int(b.number) })
}

// journal is where the journal is.
func (f *FileSystem) journal() extent { return extent{Start: f.blocks.journal, Count: journalBlocks} }

// journalNode is the inode of the journal.
func journalNode(at extent) *node {
	return &node{
		number: journalNumber, mode: typeRegular | 0o600, links: 1, size: int64(at.Count) * blockSize, extents: []extent{at},
	}
}

// journalHead is the first block of an empty journal (https://www.kernel.org/doc/html/latest/filesystems/ext4/journal.html).
func journalHead(id [16]byte, length uint32) []byte {
	b := make([]byte, blockSize)
	for at, v := range map[int]uint32{0x0: 0xc03b3998, 0x4: 4, 0xc: blockSize, 0x10: length, 0x14: 1, 0x18: 1, 0x40: 1} {
		binary.BigEndian.PutUint32(b[at:], v)
	}
	copy(b[0x30:], id[:])
	return b
}

func (f *FileSystem) renderJournal() {
	f.meta.set(f.blocks.journal, journalHead(f.id, journalBlocks))
	block, offset := f.blocks.place(journalNumber)
	copy(f.meta.at(block)[offset:], journalNode(f.journal()).inode())
}

// renderGroups sets the bitmaps, descriptors and superblocks
// (https://www.kernel.org/doc/html/latest/filesystems/ext4/group_descr.html).
func (f *FileSystem) renderGroups() {
	descriptors := make([]byte, 0, descriptorBlocks*blockSize)
	freeBlocks, freeInodes := 0, 0
	for group := range uint32(groups) {
		used := f.blocks.used[group*groupBlocks/64 : (group+1)*groupBlocks/64]
		f.meta.set(blockBitmaps+group, bitmap(used))
		numbers := f.inodes.used[group*groupInodes/64 : (group+1)*groupInodes/64]
		highest := 0
		for i, word := range numbers {
			if word != 0 {
				highest = i*64 + bits.Len64(word)
			}
		}
		inodes := make([]byte, blockSize) // not used without inodes
		if highest > 0 {
			inodes = bitmap(numbers)
		}
		f.meta.set(inodeBitmaps+group, inodes)
		b, i := groupBlocks-count(used), groupInodes-count(numbers)
		freeBlocks, freeInodes = freeBlocks+b, freeInodes+i
		places := [3]uint32{blockBitmaps + group, inodeBitmaps + group, f.blocks.tables[group]}
		descriptors = append(descriptors, descriptor(f.id, group, places, b, i, int(f.inodes.directories[group]), highest)...)
	}
	f.meta.set(1, descriptors)
	super := superblock(f.id, blocks, freeBlocks, freeInodes, f.journal())
	f.meta.set(0, padded(append(make([]byte, 1024), super...)))
	if f.layer > 1 {
		return // the copies are for a superblock that is lost, and the counts are not needed then
	}
	for group := range uint32(groups) {
		if group > 0 && hasBackup(group) {
			le.PutUint16(super[0x5a:], uint16(group))
			f.meta.set(group*groupBlocks, padded(slices.Clone(super)))
			f.meta.set(group*groupBlocks+1, descriptors)
		}
	}
}

// bitmap is the block of a bitmap: what is beyond its end is set.
func bitmap(words []uint64) []byte {
	b := make([]byte, 0, blockSize)
	for _, word := range words {
		b = le.AppendUint64(b, word)
	}
	return append(b, slices.Repeat([]byte{0xff}, blockSize-len(b))...)
}

func count(words []uint64) (n int) {
	for _, word := range words {
		n += bits.OnesCount64(word)
	}
	return n
}

// descriptor is that of a group with its two bitmaps and its inodes at these places.
func descriptor(id [16]byte, group uint32, places [3]uint32, freeBlocks, freeInodes, directories, highest int) []byte {
	flags := uint16(4) // all that is beyond the highest inode is zeros
	if highest == 0 {
		flags |= 1 // no bitmap of inodes
	}
	b := make([]byte, 0, descriptorSize)
	for _, v := range places {
		b = le.AppendUint32(b, v)
	}
	for _, v := range []uint16{
		uint16(freeBlocks), uint16(freeInodes), uint16(directories), flags, 0, 0, 0, 0,
		uint16(groupInodes - highest),
	} {
		b = le.AppendUint16(b, v)
	}
	sum := crc16(crc16(crc16(0xffff, id[:]), le.AppendUint32(nil, group)), b)
	return le.AppendUint16(b, sum)
}

// crc16 is the checksum of descriptors.
func crc16(sum uint16, b []byte) uint16 {
	for _, c := range b {
		sum ^= uint16(c)
		for range 8 {
			odd := sum & 1
			sum >>= 1
			if odd != 0 {
				sum ^= 0xa001
			}
		}
	}
	return sum
}

// superblock is the superblock, of 1 KiB (https://www.kernel.org/doc/html/latest/filesystems/ext4/super.html).
func superblock(id [16]byte, length uint32, freeBlocks, freeInodes int, journal extent) []byte {
	count := (length + groupBlocks - 1) / groupBlocks
	b := make([]byte, 1024)
	for at, v := range map[int]uint32{
		0x0: count * groupInodes, 0x4: length, 0xc: uint32(freeBlocks), 0x10: uint32(freeInodes),
		0x18: 2, 0x1c: 2, // blocks of 1<<10<<2 bytes
		0x20: groupBlocks, 0x24: groupBlocks, 0x28: groupInodes,
		0x4c: 1, 0x54: firstNumber,
		0x5c:  0x4 | 0x8 | 0x20,                     // journal, extended attributes, indexed directories
		0x60:  0x2 | 0x40 | 0x200,                   // types in directories, extents, metadata anywhere
		0x64:  0x1 | 0x2 | 0x8 | 0x10 | 0x20 | 0x40, // few superblocks, large and huge files, checksums, many subfolders, large inodes
		0xe0:  journalNumber,
		0x14c: uint32(journalNode(journal).size), // behind the copy of its extents
		0x160: 1,                                 // hashes of signed characters
	} {
		le.PutUint32(b[at:], v)
	}
	for at, v := range map[int]uint16{0x36: 0xffff, 0x38: 0xef53, 0x3a: 1, 0x3c: 1, 0x58: inodeSize, 0x15c: 32, 0x15e: 32} {
		le.PutUint16(b[at:], v)
	}
	copy(b[0x68:], id[:])
	copy(b[0xec:], id[:])
	b[0xfc], b[0xfd] = 1, 1 // half MD4; the copy of the journal's inode is there
	copy(b[0x10c:], journalNode(journal).content())
	b[0x174] = uint8(bits.Len32(groups - 1)) // so many groups share the places of their metadata
	return b
}
