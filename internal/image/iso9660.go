package image

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// sectorSize is the sector size of a CD-ROM.
const sectorSize = 2048

// The positions in the image, in sectors. The first 16 are the system area, and empty; the descriptors of both trees and their end follow.
const (
	descriptorSector = 16
	firstTree        = 19
)

// MaxISOLabel is the length of a label in the tree that has shorter ones.
const MaxISOLabel = 16

// ISOFile is a file on an ISO image. Its name is a path.
type ISOFile struct {
	Name    string
	Content []byte
}

// An image has two trees of folders with the same files: one with names as of ISO 9660 (ECMA-119), and Joliet's, which Linux and Windows
// prefer, and whose names keep their case, their length and all letters.
const (
	plain = iota
	joliet
)

// isoNode is a file or folder.
type isoNode struct {
	name     string
	content  []byte
	isFolder bool
	children map[string]*isoNode // by their names in lower case
	// The rest is different in both trees. parent is the number of a folder's parent in the path table.
	id           [2]string
	parent       [2]int
	at, capacity [2]uint32
}

// ISO returns an ISO image with these files. Its bytes depend on the label and the files alone: it has no dates. The available libraries
// use the present date, and store content, which may be secret, in temporary files. Plain names may have lower-case letters and hyphens,
// which the standard does not allow but all systems support.
func ISO(label string, files ...ISOFile) ([]byte, error) {
	if len(label) > MaxISOLabel {
		return nil, fmt.Errorf("the label %q has more than %d characters", label, MaxISOLabel)
	}
	root, err := isoRoot(files)
	if err != nil {
		return nil, err
	}
	at := uint32(firstTree)
	trees := [2][]*isoNode{root.folders(plain), root.folders(joliet)}
	var tables [2]uint32
	for k, folders := range trees {
		tables[k] = at
		at += 2 * uint32(len(padded(pathTable(k, folders, binary.LittleEndian)))/sectorSize)
		for _, f := range folders {
			f.at[k], f.capacity[k] = at, uint32(len(f.directory(k, f)))
			at += f.capacity[k] / sectorSize
		}
	}
	var content []byte
	for _, f := range trees[plain] {
		for _, n := range f.sorted(plain) {
			if !n.isFolder {
				position, size := at+uint32(len(content)/sectorSize), uint32(len(n.content))
				n.at, n.capacity = [2]uint32{position, position}, [2]uint32{size, size}
				content = append(content, padded(n.content)...)
			}
		}
	}
	image := make([]byte, descriptorSector*sectorSize)
	for k, folders := range trees {
		image = append(image, descriptor(k, label, at+uint32(len(content)/sectorSize), tables[k], folders)...)
	}
	image = append(image, padded([]byte("\xffCD001\x01"))...)
	for k, folders := range trees {
		image = append(image, padded(pathTable(k, folders, binary.LittleEndian))...)
		image = append(image, padded(pathTable(k, folders, binary.BigEndian))...)
		for _, f := range folders {
			image = append(image, f.directory(k, folders[f.parent[k]])...)
		}
	}
	return append(image, content...), nil
}

// isoRoot returns the root folder. Windows does not tell names apart that differ in case only.
func isoRoot(files []ISOFile) (*isoNode, error) {
	root := &isoNode{isFolder: true, id: [2]string{"\x00", "\x00"}, children: map[string]*isoNode{}}
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b ISOFile) int { return cmp.Compare(a.Name, b.Name) }) {
		if err := checkISOPath(f.Name); err != nil {
			return nil, err
		}
		in, parts := root, strings.Split(f.Name, "/")
		for i, name := range parts {
			isFolder, key := i < len(parts)-1, strings.ToLower(name)
			n, ok := in.children[key]
			if ok && (n.name != name || !n.isFolder || !isFolder) {
				return nil, fmt.Errorf("two files have the path %.100q, or paths that differ in case only, or one is a file and a folder",
					strings.Join(parts[:i+1], "/"))
			}
			if !ok {
				n = &isoNode{name: name, isFolder: isFolder, content: f.Content, children: map[string]*isoNode{}}
				in.children[key] = n
			}
			in = n
		}
	}
	root.setIDs()
	return root, nil
}

// checkISOPath refuses what a system that reads the image can't open: names of more than Joliet's 64 characters, or with its reserved ones,
// with a dot or a space at the end (Windows, Linux), and paths of more than its 120 characters or of more than ISO 9660's 8 levels.
func checkISOPath(path string) error {
	parts := strings.Split(path, "/")
	good := utf8.ValidString(path) && utf8.RuneCountInString(path) <= 120 && len(parts) <= 8
	for _, name := range parts {
		good = good && name != "" && utf8.RuneCountInString(name) <= 64 && name == strings.TrimRight(name, ". ") &&
			!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r > 0xffff || strings.ContainsRune(`*:;?\`, r) })
	}
	if !good {
		return fmt.Errorf(`%.15q can't be a path on an ISO image: at most 120 characters in 8 names with / between them, each of 1 to 64 `+
			`printable characters other than * : ; ? \, without a dot or space at its end`, path)
	}
	return nil
}

// setIDs sets the identifiers of the children in both trees. A plain name that is long or has other letters than ASCII's is shortened, with
// the name's number in the folder behind a tilde, which no other plain name has.
func (n *isoNode) setIDs() {
	for i, key := range slices.Sorted(maps.Keys(n.children)) {
		c, version := n.children[key], ""
		if !c.isFolder {
			version = ";1"
		}
		short := strings.Map(func(r rune) rune {
			if r > unicode.MaxASCII || r == '~' {
				return '_'
			}
			return r
		}, c.name)
		if short != c.name || len(short) > 28 {
			short = fmt.Sprintf("%.20s~%d", short, i)
		}
		c.id = [2]string{short + version, ucs2(c.name + version)}
		c.setIDs()
	}
}

// sorted are the children in the order of their identifiers.
func (n *isoNode) sorted(k int) []*isoNode {
	return slices.SortedFunc(maps.Values(n.children), func(a, b *isoNode) int { return cmp.Compare(a.id[k], b.id[k]) })
}

// folders are the folder and all below it, in the order of a path table: by level, then parent, then name.
func (n *isoNode) folders(k int) []*isoNode {
	all := []*isoNode{n}
	for i := 0; i < len(all); i++ {
		for _, c := range all[i].sorted(k) {
			if c.isFolder {
				c.parent[k] = i
				all = append(all, c)
			}
		}
	}
	return all
}

// directory returns the records of a folder in whole sectors; none is in two of them.
func (n *isoNode) directory(k int, parent *isoNode) []byte {
	all := append(n.record(k, "\x00"), parent.record(k, "\x01")...)
	for _, c := range n.sorted(k) {
		record := c.record(k, c.id[k])
		if len(all)%sectorSize+len(record) > sectorSize {
			all = append(all, make([]byte, sectorSize-len(all)%sectorSize)...)
		}
		all = append(all, record...)
	}
	return padded(all)
}

// record returns the directory record (ECMA-119, 9.1).
func (n *isoNode) record(k int, id string) []byte {
	flags := byte(0)
	if n.isFolder {
		flags = 2
	}
	size := 33 + len(id)
	size += size % 2
	record := slices.Concat([]byte{byte(size), 0}, both(n.at[k]), both(n.capacity[k]), make([]byte, 7), []byte{flags, 0, 0}, bothShort(1),
		[]byte{byte(len(id))}, []byte(id))
	return append(record, make([]byte, size-len(record))...)
}

// pathTable returns a path table (ECMA-119, 9.4).
func pathTable(k int, folders []*isoNode, order binary.AppendByteOrder) (table []byte) {
	for _, f := range folders {
		table = order.AppendUint32(append(table, byte(len(f.id[k])), 0), f.at[k])
		table = append(order.AppendUint16(table, uint16(f.parent[k]+1)), f.id[k]...)
		table = append(table, make([]byte, len(f.id[k])%2)...)
	}
	return table
}

// descriptor returns a volume descriptor (ECMA-119, 8.4 and 8.5).
func descriptor(k int, label string, sectors, table uint32, folders []*isoNode) []byte {
	kind, escapes := byte(1), ""
	if k == joliet {
		kind, escapes = 2, "%/E"
	}
	size := uint32(len(pathTable(k, folders, binary.LittleEndian)))
	noDate := append(bytes.Repeat([]byte("0"), 16), 0)
	return padded(slices.Concat(
		[]byte{kind}, []byte("CD001\x01\x00"), text(k, "", 32), text(k, label, 32), make([]byte, 8), both(sectors),
		[]byte(escapes), make([]byte, 32-len(escapes)), bothShort(1), bothShort(1), bothShort(sectorSize), both(size),
		binary.LittleEndian.AppendUint32(nil, table), make([]byte, 4),
		binary.BigEndian.AppendUint32(nil, table+(size+sectorSize-1)/sectorSize), make([]byte, 4), folders[0].record(k, "\x00"),
		text(k, "", 4*128), text(k, "", 37), text(k, "", 37), text(k, "", 37), noDate, noDate, noDate, noDate, []byte{1, 0},
	))
}

// text pads s to a field of width bytes.
func text(k int, s string, width int) []byte {
	if k == plain {
		return fmt.Appendf(nil, "%-*s", width, s)
	}
	return append([]byte(ucs2(fmt.Sprintf("%-*s", width/2, s))), make([]byte, width%2)...)
}

// ucs2 encodes s as Joliet does.
func ucs2(s string) string {
	var encoded []byte
	for _, unit := range utf16.Encode([]rune(s)) {
		encoded = binary.BigEndian.AppendUint16(encoded, unit)
	}
	return string(encoded)
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
