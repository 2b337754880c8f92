package rootfs

import (
	"io"
	"maps"
	"slices"
)

// metadata are the blocks that are no files' content: a cluster is written as a whole, so what has not changed in it must be known.
type metadata struct {
	blocks map[uint32][]byte
	// changed are the clusters that this layer has to write.
	changed map[uint32]bool
}

func newMetadata() metadata {
	return metadata{blocks: map[uint32][]byte{}, changed: map[uint32]bool{}}
}

// at returns a block to be changed.
func (m *metadata) at(block uint32) []byte {
	b := m.blocks[block]
	if b == nil {
		b = make([]byte, blockSize)
		m.blocks[block] = b
	}
	m.changed[block/clusterBlocks] = true
	return b
}

// set replaces a block. One that is the same already isn't written again.
func (m *metadata) set(block uint32, b []byte) {
	if was := m.blocks[block]; slices.Equal(was, b) || was == nil && isZero(b) {
		return
	}
	copy(m.at(block), b)
}

// write writes what has changed.
func (m *metadata) write(to *image) error {
	for _, number := range slices.Sorted(maps.Keys(m.changed)) {
		cluster := make([]byte, 0, clusterSize)
		for i := range uint32(clusterBlocks) {
			if b := m.blocks[number*clusterBlocks+i]; b != nil {
				cluster = append(cluster, b...)
			} else {
				cluster = cluster[:len(cluster)+blockSize]
			}
		}
		if err := to.write(number, cluster); err != nil {
			return err
		}
	}
	clear(m.changed)
	return nil
}

// free gives up a file and its blocks.
func (f *FileSystem) free(n *node) {
	for _, e := range n.extents {
		f.blocks.mark(e, false)
		if n.is(typeDirectory) || n.is(typeSymlink) {
			for b := e.Start; b < e.Start+e.Count; b++ {
				delete(f.meta.blocks, b)
			}
		}
	}
	f.freeBlock(&n.leaf)
	f.freeBlock(&n.attributeBlock)
	f.inodes.give(n.number, n.entries != nil)
	delete(f.changed, n)
	f.removed = append(f.removed, n.number)
	block, offset := f.blocks.place(n.number)
	clear(f.meta.at(block)[offset : offset+inodeSize])
}

// freeBlock gives up a block of metadata.
func (f *FileSystem) freeBlock(block *uint32) {
	if *block != 0 {
		f.blocks.mark(extent{Start: *block, Count: 1}, false)
		delete(f.meta.blocks, *block)
		*block = 0
	}
}

// writeData writes the content of a file.
func (f *FileSystem) writeData(n *node, r io.Reader) error {
	left := n.size
	if left > int64(blocks-min(f.blocks.next, blocks))*blockSize {
		return errFull // before all of it is read
	}
	for left > 0 {
		e, err := f.blocks.take(uint32((left + blockSize - 1) / blockSize))
		if err != nil {
			return err
		}
		n.extend(e)
		for at, end := e.Start, e.Start+e.Count; at < end; {
			cluster, err := f.open(at / clusterBlocks)
			if err != nil {
				return err
			}
			first := at % clusterBlocks
			count := min(clusterBlocks-first, end-at)
			part := min(left, int64(count)*blockSize)
			if _, err := io.ReadFull(r, cluster[first*blockSize:][:part]); err != nil {
				return err
			}
			left -= part
			at += count
		}
	}
	return nil
}

// open returns the cluster of data at a place, after the one before it was written.
func (f *FileSystem) open(number uint32) ([]byte, error) {
	if f.number == number {
		return f.cluster, nil
	}
	err := f.flush()
	f.number = number
	return f.cluster, err
}

func (f *FileSystem) flush() error {
	if f.number == 0 {
		return nil
	}
	err := f.out.write(f.number, f.cluster)
	clear(f.cluster)
	f.number = 0
	return err
}

// extend adds blocks to the end of a file.
func (n *node) extend(e extent) {
	if last := len(n.extents) - 1; last >= 0 {
		was := &n.extents[last]
		e.First = was.First + was.Count
		if was.Start+was.Count == e.Start && was.Count+e.Count <= maxExtent {
			was.Count += e.Count
			return
		}
	}
	n.extents = append(n.extents, e)
}
