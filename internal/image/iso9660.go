package image

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// sectorSize is the sector size of a CD-ROM.
const sectorSize = 2048

// The positions in the image, in sectors. The first 16 are the system area, and empty.
const (
	descriptorSector = 16
	endSector        = 17
	littleSector     = 18
	bigSector        = 19
	rootSector       = 20
	firstFile        = 21
)

// ISOFile is a file in the root folder of an ISO image.
type ISOFile struct {
	Name    string
	Content []byte
}

// ISO returns an ISO 9660 image (ECMA-119) with these files. Its bytes depend on the files alone: it has no dates. The available libraries
// use the present date, and store content, which may be secret, in temporary files. Names may have lower-case letters and hyphens, which
// the standard does not allow but all systems support.
func ISO(label string, files ...ISOFile) ([]byte, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b ISOFile) int { return strings.Compare(a.Name, b.Name) })
	root := slices.Concat(directoryRecord("\x00", rootSector, sectorSize, true), directoryRecord("\x01", rootSector, sectorSize, true))
	var content []byte
	for _, f := range files {
		if len(f.Name) == 0 || len(f.Name) > 28 || strings.ContainsAny(f.Name, "/;") {
			return nil, fmt.Errorf("%q can't be the name of a file on an ISO image", f.Name)
		}
		at := uint32(firstFile + len(content)/sectorSize)
		root = append(root, directoryRecord(f.Name+";1", at, uint32(len(f.Content)), false)...)
		content = append(content, padded(f.Content)...)
	}
	if len(root) > sectorSize {
		return nil, fmt.Errorf("%d files do not fit on an ISO image of virtclaim's", len(files))
	}
	sectors := uint32(firstFile + len(content)/sectorSize)
	return slices.Concat(
		make([]byte, descriptorSector*sectorSize), descriptor(label, sectors), padded([]byte("\xffCD001\x01")),
		padded(pathTable(binary.LittleEndian)), padded(pathTable(binary.BigEndian)), padded(root), content,
	), nil
}

// padded pads b to whole sectors.
func padded(b []byte) []byte {
	return append(slices.Clone(b), make([]byte, (sectorSize-len(b)%sectorSize)%sectorSize)...)
}

// both encodes a number in both byte orders.
func both(n uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, n), n)
}

func bothShort(n uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, n), n)
}

// text pads s to a field of width bytes.
func text(s string, width int) []byte {
	return []byte(s + strings.Repeat(" ", max(0, width-len(s))))[:width]
}

// directoryRecord returns a directory record (ECMA-119, 9.1).
func directoryRecord(name string, sector, length uint32, isDirectory bool) []byte {
	flags := byte(0)
	if isDirectory {
		flags = 2
	}
	size := 33 + len(name)
	size += size % 2
	record := slices.Concat(
		[]byte{byte(size), 0}, both(sector), both(length), make([]byte, 7), []byte{
			flags, 0,
			0,
		}, bothShort(1), []byte{byte(len(name))}, []byte(name),
	)
	return append(record, make([]byte, size-len(record))...)
}

// pathTable returns a path table with only the root directory (ECMA-119, 9.4).
func pathTable(order binary.AppendByteOrder) []byte {
	table := order.AppendUint32([]byte{1, 0}, rootSector)
	return append(order.AppendUint16(table, 1), 0, 0)
}

// descriptor returns the primary volume descriptor (ECMA-119, 8.4).
func descriptor(label string, sectors uint32) []byte {
	table := uint32(len(pathTable(binary.LittleEndian)))
	noDate := append([]byte(strings.Repeat("0", 16)), 0)
	return padded(slices.Concat(
		[]byte("\x01CD001\x01\x00"), text("", 32), text(label, 32), make([]byte, 8), both(sectors), make([]byte, 32),
		bothShort(1), bothShort(1), bothShort(sectorSize), both(table),
		binary.LittleEndian.AppendUint32(nil, littleSector), make([]byte, 4),
		binary.BigEndian.AppendUint32(nil, bigSector), make([]byte, 4),
		directoryRecord("\x00", rootSector, sectorSize, true),
		text("", 4*128+3*37), noDate, noDate, noDate, noDate, []byte{1, 0},
	))
}
