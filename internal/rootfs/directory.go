package rootfs

// fileTypes are those of directory entries (https://www.kernel.org/doc/html/latest/filesystems/ext4/directory.html).
var fileTypes = map[uint16]byte{
	typeRegular: 1, typeDirectory: 2, typeCharacter: 3, typeBlock: 4, typeFIFO: 5, typeSymlink: 7,
}

// writeDirectory writes the entries of a directory, in its blocks as far as they are enough.
func (f *FileSystem) writeDirectory(d *node) error {
	content := d.directoryBlocks()
	places := d.places()
	for _, block := range places[min(len(content), len(places)):] {
		f.freeBlock(&block)
	}
	places = places[:min(len(content), len(places))]
	d.extents = nil
	for n := range content {
		if n == len(places) {
			block, err := f.blocks.takeMeta()
			if err != nil {
				return err
			}
			places = append(places, block)
		}
		d.extend(extent{Start: places[n], Count: 1})
	}
	d.size = int64(len(content)) * blockSize
	f.renderDirectory(d, content)
	return nil
}

func (f *FileSystem) renderDirectory(d *node, content [][]byte) {
	for n, block := range d.places() {
		f.meta.set(block, content[n])
	}
}

// places are the blocks of a file.
func (n *node) places() (all []uint32) {
	for _, e := range n.extents {
		for b := range e.Count {
			all = append(all, e.Start+b)
		}
	}
	return all
}

// directoryBlocks are the entries of a directory.
func (n *node) directoryBlocks() (all [][]byte) {
	var block []byte
	last := 0
	end := func() {
		if block != nil {
			le.PutUint16(block[last+4:], uint16(blockSize-last))
			all = append(all, padded(block))
		}
	}
	add := func(name string, n *node) {
		length := (8 + len(name) + 3) &^ 3
		if block == nil || len(block)+length > blockSize {
			end()
			block = make([]byte, 0, blockSize)
		}
		last = len(block)
		block = le.AppendUint32(block, n.number)
		block = le.AppendUint16(block, uint16(length))
		block = append(block, byte(len(name)), fileTypes[n.mode&typeMask])
		block = append(block, name...)
		block = append(block, make([]byte, last+length-len(block))...)
	}
	add(".", n)
	add("..", n.parent)
	for _, name := range n.ordered() {
		add(name, n.entries[name].node)
	}
	end()
	return all
}
