package image_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/kdomanski/iso9660"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

func iso(t *testing.T, files ...image.ISOFile) []byte {
	t.Helper()
	got, err := image.ISO("cidata", files...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func isoOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var all []image.ISOFile
	for name, content := range files {
		all = append(all, image.ISOFile{Name: name, Content: []byte(content)})
	}
	return iso(t, all...)
}

// plainTree reads the tree of ISO 9660 by another implementation. It has the depths of all files but no folder.
func plainTree(t *testing.T, iso []byte) map[string]string {
	t.Helper()
	read, err := iso9660.OpenImage(bytes.NewReader(iso))
	if err != nil {
		t.Fatal(err)
	}
	if label, err := read.Label(); err != nil || label != "cidata" {
		t.Errorf("the label is %q, %v", label, err)
	}
	root, err := read.RootDir()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	var walk func(at string, f *iso9660.File)
	walk = func(at string, f *iso9660.File) {
		children, err := f.GetChildren()
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		for _, c := range children {
			name := at + c.Name()
			if len(c.Name()) > 31 || found[name] != "" {
				t.Errorf("%s is there twice, or is long", name)
			}
			if c.IsDir() {
				walk(name+"/", c)
				continue
			}
			content, err := io.ReadAll(c.Reader())
			if err != nil {
				t.Fatal(err)
			}
			found[name] = string(content)
		}
	}
	walk("", root)
	return found
}

// jolietTree reads the other tree, in two ways: by its path table in both byte orders, and by the records of its folders.
func jolietTree(t *testing.T, iso []byte) map[string]string {
	t.Helper()
	const sector = 2048
	d := iso[17*sector:]
	if !bytes.HasPrefix(d, []byte("\x02CD001\x01")) || string(d[88:91]) != "%/E" || decoded(d[40:72]) != "cidata          " {
		t.Fatalf("no descriptor of Joliet: %q", d[:100])
	}
	if size := binary.LittleEndian.Uint32(d[80:]); int(size)*sector != len(iso) {
		t.Errorf("it is to have %d sectors", size)
	}
	little, big := iso[binary.LittleEndian.Uint32(d[140:])*sector:], iso[binary.BigEndian.Uint32(d[148:])*sector:]
	var inTable []string
	for length := int(binary.LittleEndian.Uint32(d[132:])); length > 0; {
		at, n := binary.LittleEndian.Uint32(little[2:]), int(little[0])
		if at != binary.BigEndian.Uint32(big[2:]) || binary.LittleEndian.Uint16(little[6:]) != binary.BigEndian.Uint16(big[6:]) {
			t.Fatal("the path tables differ")
		}
		parent := ""
		if len(inTable) > 0 {
			parent = inTable[binary.LittleEndian.Uint16(little[6:])-1]
		}
		inTable = append(inTable, parent+decoded(little[8:8+n])+fmt.Sprintf("@%d/", at))
		n += 8 + n%2
		little, big, length = little[n:], big[n:], length-n
	}
	found := map[string]string{}
	folders := []string{}
	var walk func(path, numbered string, record []byte, above uint32)
	walk = func(path, numbered string, record []byte, above uint32) {
		at, size := binary.LittleEndian.Uint32(record[2:]), binary.LittleEndian.Uint32(record[10:])
		numbered += fmt.Sprintf("@%d/", at)
		folders = append(folders, numbered)
		own := iso[at*sector : at*sector+size]
		if binary.BigEndian.Uint32(own[6:]) != at || binary.LittleEndian.Uint32(own[34+2:]) != above {
			t.Errorf("%s: wrong records of it and of its parent", path)
		}
		for i := 68; i < len(own); {
			n := int(own[i])
			if n == 0 {
				i = (i/sector + 1) * sector
				continue
			}
			r := own[i : i+n]
			i += n
			name := decoded(r[33 : 33+int(r[32])])
			if r[25] == 2 {
				walk(path+name+"/", numbered+name, r, at)
				continue
			}
			from := binary.LittleEndian.Uint32(r[2:]) * sector
			found[path+strings.TrimSuffix(name, ";1")] = string(iso[from : from+binary.LittleEndian.Uint32(r[10:])])
		}
	}
	walk("", "", d[156:190], binary.LittleEndian.Uint32(d[158:]))
	for i := range inTable {
		inTable[i] = strings.TrimPrefix(inTable[i], "\x00")
	}
	slices.Sort(folders)
	if slices.Sort(inTable); !slices.Equal(folders, inTable) {
		t.Errorf("the path table has others than the folders:\n%q\n%q", inTable, folders)
	}
	return found
}

// decoded decodes a text of Joliet; the name of the root folder is one byte.
func decoded(text []byte) string {
	var units []uint16
	for i := 0; i+1 < len(text); i += 2 {
		units = append(units, binary.BigEndian.Uint16(text[i:]))
	}
	return string(utf16.Decode(units))
}

// Both trees have all files. Another implementation reads one of them; Linux reads the other one in TestAccDisk_Files.
func TestISO_IsRead(t *testing.T) {
	files := map[string]string{"user-data": "#cloud-config\n", "meta-data": strings.Repeat("x", 5000), "network-config": ""}
	image := isoOf(t, files)
	if diff := cmp.Diff(files, plainTree(t, image)); diff != "" {
		t.Errorf("the plain tree (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(files, jolietTree(t, image)); diff != "" {
		t.Errorf("Joliet's tree (-want +got):\n%s", diff)
	}
}

// Folders of several sectors, a path table of several, long names with equal beginnings, letters beyond ASCII, and names that look as if
// they were shortened.
func TestISO_ManyNames(t *testing.T) {
	long := strings.Repeat("n", 63)
	files := map[string]string{
		"Autounattend.xml": "<unattend/>", "$OEM$/$1/Größe.txt": "1", "$OEM$/$1/Grüße.txt": "2", "a/b/c/d/e/f/g/h": "deep",
		"long/" + long + "1": "first", "long/" + long + "2": "second", "long/nnnnnnnnnnnnnnnnnnnn~0": "third", "long/~": "fourth",
		"config/" + long + "1/x": "5", "config/" + long + "2/x": "6",
	}
	for i := range 300 {
		files[fmt.Sprintf("many/A file with the number %03d.txt", i)] = fmt.Sprint("file ", i)
		files[fmt.Sprintf("folders/Folder-%03d/x", i)] = fmt.Sprint("in folder ", i)
	}
	image := isoOf(t, files)
	if diff := cmp.Diff(files, jolietTree(t, image)); diff != "" {
		t.Errorf("Joliet's tree (-want +got):\n%s", diff)
	}
	plain := plainTree(t, image)
	if diff := cmp.Diff(slices.Sorted(maps.Values(files)), slices.Sorted(maps.Values(plain))); diff != "" {
		t.Errorf("the plain tree (-want +got):\n%s", diff)
	}
	for name, content := range map[string]string{"Autounattend.xml": "<unattend/>", "folders/Folder-299/x": "in folder 299", "$OEM$/$1/Gr__e.txt~0": "1"} {
		if plain[name] != content {
			t.Errorf("%s has %q", name, plain[name])
		}
	}
}

func TestISO_IsReproducible(t *testing.T) {
	a, b, c := image.ISOFile{Name: "a", Content: []byte("1")}, image.ISOFile{Name: "b/B", Content: []byte("2")}, image.ISOFile{Name: "b/a"}
	if !bytes.Equal(iso(t, a, b, c), iso(t, c, b, a)) {
		t.Error("the order of files matters")
	}
	if len(iso(t, a, b))%2048 != 0 {
		t.Error("it does not end with a sector")
	}
	other, err := image.ISO("other", a, b, c)
	if err != nil || bytes.Equal(other, iso(t, a, b, c)) {
		t.Errorf("the label does not matter: %v", err)
	}
	shared := append(make([]byte, 0, 10), "1"...)
	if iso(t, image.ISOFile{Name: "a", Content: shared}); string(shared[:2]) != "1\x00" {
		t.Error("the caller's bytes changed")
	}
}

func TestISO_Names(t *testing.T) {
	for _, name := range []string{"a", "a/b", "a b/.c", strings.Repeat("ä", 64), "a/b/c/d/e/f/g/h", "$x$'\"<>|"} {
		if _, err := image.ISO("cidata", image.ISOFile{Name: name}); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{
		"", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a.", "a ", "a /b", "a;1", `a\b`, "a:b", "a*", "a?", "a\x00", "a\nb", "\x1b[2J", "a\u202eb", "\xff",
		"😀", strings.Repeat("a", 65), strings.Repeat(strings.Repeat("a", 40)+"/", 3) + "b", "a/b/c/d/e/f/g/h/i", strings.Repeat("\x01", 5000),
	} {
		_, err := image.ISO("cidata", image.ISOFile{Name: name})
		if err == nil || len(err.Error()) > 300 || strings.ContainsAny(err.Error(), "\x00\x01\n\x1b") {
			t.Errorf("%q is taken, or refused with %v", name, err)
		}
	}
	for _, names := range [][2]string{{"a", "a"}, {"a", "A"}, {"x/a", "x/A"}, {"x/a", "X/b"}, {"a", "a/b"}, {"A", "a/b"}, {"Ä", "ä"}} {
		for _, other := range [][2]string{names, {names[1], names[0]}} {
			if _, err := image.ISO("cidata", image.ISOFile{Name: other[0]}, image.ISOFile{Name: other[1]}); err == nil {
				t.Errorf("%q are taken", other)
			}
		}
	}
	if _, err := image.ISO(strings.Repeat("l", 17), image.ISOFile{Name: "a"}); err == nil {
		t.Error("a long label is taken")
	}
}

// Folders have another order in each tree, where a plain name stands for one with other letters.
func TestISO_ParentsOfBothTrees(t *testing.T) {
	const sector = 2048
	iso := isoOf(t, map[string]string{"é/x/1": "1", "z/y/2": "2", "a/b/c/3": "3"})
	for _, descriptor := range []int{16, 17} {
		d := iso[descriptor*sector:]
		table := iso[binary.LittleEndian.Uint32(d[140:])*sector:]
		var places []uint32
		for length := int(binary.LittleEndian.Uint32(d[132:])); length > 0; {
			at, n := binary.LittleEndian.Uint32(table[2:]), 8+int(table[0])+int(table[0])%2
			places = append(places, at)
			parent := places[binary.LittleEndian.Uint16(table[6:])-1]
			if own := iso[at*sector:]; binary.LittleEndian.Uint32(own[34+2:]) != parent || at != parent && !isIn(iso[parent*sector:][:sector], at) {
				t.Errorf("descriptor %d: the folder at %d has not the parent at %d", descriptor, at, parent)
			}
			table, length = table[n:], length-n
		}
	}
}

// isIn reports whether a folder has another one.
func isIn(folder []byte, at uint32) bool {
	for i := 0; folder[i] != 0; i += int(folder[i]) {
		if binary.LittleEndian.Uint32(folder[i+2:]) == at {
			return true
		}
	}
	return false
}
