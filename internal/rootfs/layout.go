package rootfs

// The geometry of each file system, in blocks, inodes and bytes. What is described with a URL is as in
// https://www.kernel.org/doc/html/latest/filesystems/ext4/.
const (
	blockSize        = 4096
	clusterSize      = 64 << 10 // of qcow2
	clusterBlocks    = clusterSize / blockSize
	blocks           = Size / blockSize
	groupBlocks      = 8 * blockSize
	groups           = blocks / groupBlocks
	inodeSize        = 256
	groupInodes      = 8192
	tableBlocks      = groupInodes * inodeSize / blockSize
	descriptorSize   = 32
	descriptorBlocks = groups * descriptorSize / blockSize
	journalBlocks    = 4096

	rootNumber, journalNumber, firstNumber = 2, 8, 11

	// All bitmaps are in the first group, and each kind of metadata is in clusters of its own, so that no layer needs to read
	// those below.
	blockBitmaps = clusterBlocks
	inodeBitmaps = blockBitmaps + groups
)

// hasBackup reports whether a group begins with a copy of the superblock and the descriptors (sparse_super).
func hasBackup(group uint32) bool {
	for _, base := range []uint32{3, 5, 7} {
		power := uint32(1)
		for power < group {
			power *= base
		}
		if power == group {
			return true
		}
	}
	return group == 0
}

func aligned(block uint32) uint32 { return (block + clusterBlocks - 1) / clusterBlocks * clusterBlocks }

// afterBackup returns the first block from there on that has no copy of the superblock in its cluster.
func afterBackup(block uint32) uint32 {
	group := block / groupBlocks
	if end := group*groupBlocks + aligned(1+descriptorBlocks); hasBackup(group) && block < end {
		return end
	}
	return block
}

// allocation are the blocks in use. None is used again, so that a layer writes no cluster of the layers below but those of metadata.
type allocation struct {
	used [blocks / 64]uint64
	// tables are where the inodes of each group are, and journal is the first block of the journal.
	tables  [groups]uint32
	journal uint32
	next    uint32
	// metaNext and metaEnd are the blocks that are left of the last cluster of metadata.
	metaNext, metaEnd uint32
}

func (a *allocation) init() {
	at := aligned(inodeBitmaps + groups)
	place := func(n uint32) uint32 {
		at = afterBackup(at)
		if group := at/groupBlocks + 1; at+n > group*groupBlocks && hasBackup(group) {
			at = afterBackup(group * groupBlocks)
		}
		at += n
		return at - n
	}
	for group := range a.tables {
		a.tables[group] = place(tableBlocks)
	}
	a.journal = place(journalBlocks)
	a.next = at
	a.reserve()
}

// reserve marks what every file system needs.
func (a *allocation) reserve() {
	for group, table := range a.tables {
		if hasBackup(uint32(group)) {
			a.mark(extent{Start: uint32(group) * groupBlocks, Count: 1 + descriptorBlocks}, true)
		}
		a.mark(extent{Start: table, Count: tableBlocks}, true)
	}
	a.mark(extent{Start: blockBitmaps, Count: 2 * groups}, true)
	a.mark(extent{Start: a.journal, Count: journalBlocks}, true)
}

// align begins a cluster.
func (a *allocation) align() { a.next, a.metaNext, a.metaEnd = aligned(a.next), 0, 0 }

func (a *allocation) mark(e extent, used bool) {
	for b := e.Start; b < e.Start+e.Count; b++ {
		if used {
			a.used[b/64] |= 1 << (b % 64)
		} else {
			a.used[b/64] &^= 1 << (b % 64)
		}
	}
}

// take returns at most n blocks in a row, in Start and Count.
func (a *allocation) take(n uint32) (extent, error) {
	e := extent{Start: afterBackup(a.next)}
	e.Count = min(n, groupBlocks-e.Start%groupBlocks, maxExtent)
	if e.Start+e.Count > blocks {
		return extent{}, errFull
	}
	a.mark(e, true)
	a.next = e.Start + e.Count
	return e, nil
}

// takeMeta returns a block for metadata.
func (a *allocation) takeMeta() (uint32, error) {
	if a.metaNext == a.metaEnd {
		a.metaNext = afterBackup(aligned(a.next))
		a.metaEnd = a.metaNext + clusterBlocks
		a.next = a.metaEnd
	}
	if a.metaEnd > blocks {
		return 0, errFull
	}
	a.metaNext++
	a.mark(extent{Start: a.metaNext - 1, Count: 1}, true)
	return a.metaNext - 1, nil
}

// numbers are the inodes in use. None is used again.
type numbers struct {
	used        [groups * groupInodes / 64]uint64
	directories [groups]uint16
	next        uint32
}

func (n *numbers) init() {
	n.next = firstNumber
	for number := uint32(1); number < firstNumber; number++ {
		n.mark(number, true)
	}
}

func (n *numbers) mark(number uint32, used bool) {
	if i := number - 1; used {
		n.used[i/64] |= 1 << (i % 64)
	} else {
		n.used[i/64] &^= 1 << (i % 64)
	}
}

func (n *numbers) take(directory bool) (uint32, error) {
	if n.next > groups*groupInodes {
		return 0, errNumbers
	}
	n.mark(n.next, true)
	if directory {
		n.directories[(n.next-1)/groupInodes]++
	}
	n.next++
	return n.next - 1, nil
}

// give returns the number of a removed file.
func (n *numbers) give(number uint32, directory bool) {
	n.mark(number, false)
	if directory {
		n.directories[(number-1)/groupInodes]--
	}
}

// place is where an inode is: a block, and the bytes before it in there.
func (a *allocation) place(number uint32) (block uint32, offset int) {
	i := number - 1
	return a.tables[i/groupInodes] + i%groupInodes*inodeSize/blockSize, int(i * inodeSize % blockSize)
}
