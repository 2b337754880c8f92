package rootfs

import "slices"

// The sizes of the smallest and the largest disk that gets a file system, in bytes: blocks have numbers of 32 bits.
const (
	MinBlank = 16 << 20
	MaxBlank = 1<<32*BlockSize - 1
)

// BlockSize is the size of a block, in bytes.
const BlockSize = blockSize

// Blank is a file system without files for a disk of any size. It has the disk's first group only: what mounts it enlarges it.
type Blank struct {
	ID             [16]byte
	Blocks         uint32 // of the disk
	UID, GID, Mode uint32 // of the root directory
}

// The places of a blank file system, in blocks: descriptors, two bitmaps, inodes, the root directory, and then the journal.
const (
	blankBitmaps   = 2
	blankTable     = blankBitmaps + 2
	blankDirectory = blankTable + tableBlocks
	blankJournal   = blankDirectory + 1
)

// journal is a 64th of the disk, because its size remains when the file system grows: 4 MiB at least, and 64 MiB at most.
func (b Blank) journal() extent {
	return extent{Start: blankJournal, Count: min(max(b.Blocks/64, 1024), 16384)}
}

// Size is how much it uses at the beginning of the disk, in bytes. All of that must be zeros, but what Content has.
func (b Blank) Size() int64 {
	journal := b.journal()
	return int64(journal.Start+journal.Count) * blockSize
}

// Content is what isn't zeros, by places in bytes. The first block begins with 1024 bytes that ext4 does not use.
func (b Blank) Content() map[int64][]byte {
	length := min(b.Blocks, groupBlocks)
	blocks, inodes := make([]uint64, groupBlocks/64), make([]uint64, groupInodes/64)
	mark := func(words []uint64, from, to uint32) {
		for n := from; n < to; n++ {
			words[n/64] |= 1 << (n % 64)
		}
	}
	journal := b.journal()
	mark(blocks, 0, journal.Start+journal.Count)
	mark(blocks, length, groupBlocks)
	mark(inodes, 0, firstNumber-1)
	root := &node{
		number: rootNumber, mode: typeDirectory | uint16(b.Mode)&0o7777, uid: b.UID, gid: b.GID, size: blockSize, links: 2,
		entries: map[string]*entry{}, extents: []extent{{Start: blankDirectory, Count: 1}},
	}
	root.parent = root
	table := make([]byte, blockSize)
	copy(table[(rootNumber-1)*inodeSize:], root.inode())
	copy(table[(journalNumber-1)*inodeSize:], journalNode(journal).inode())
	freeBlocks, freeInodes := groupBlocks-count(blocks), groupInodes-count(inodes)
	places := [3]uint32{blankBitmaps, blankBitmaps + 1, blankTable}
	super := superblock(b.ID, length, freeBlocks, freeInodes, journal)
	super[0x174] = 4 // 16 groups, as usual
	return map[int64][]byte{
		0:                              padded(slices.Concat(make([]byte, 1024), super)),
		blockSize:                      padded(descriptor(b.ID, 0, places, freeBlocks, freeInodes, 1, firstNumber-1)),
		blankBitmaps * blockSize:       bitmap(blocks),
		(blankBitmaps + 1) * blockSize: bitmap(inodes),
		blankTable * blockSize:         table,
		blankDirectory * blockSize:     root.directoryBlocks()[0],
		blankJournal * blockSize:       journalHead(b.ID, journal.Count),
	}
}
