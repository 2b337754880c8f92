// Package image reads, checks and creates disk images: where their bytes come from, and what they may contain. It knows neither libvirt,
// Terraform nor Kubernetes.
package image

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Header is what the header of an image declares.
type Header struct {
	// Format is QEMU's name: raw or qcow2. An image without a header is raw.
	Format string
	// Capacity is the guest-visible size in bytes; 0 for a raw image, whose size is its length.
	Capacity int64
}

// HeadSize is how many bytes of an image Probe needs, or all of a shorter one. The header of a qcow2 image is one cluster, of at most 2
// MiB, of which only the beginning is used.
const HeadSize = 64 << 10

// MaxCapacity is the maximal capacity that a header may declare, in bytes: a larger one is a mistake or an attack.
const MaxCapacity = 64 << 40

// ErrUntrusted is the error of an image that is refused because of its content.
var ErrUntrusted = errors.New("the image is refused")

// magics are the headers of unsupported formats, by their offset.
var magics = []struct {
	offset int
	magic  string
	format string
}{
	{0, "KDMV", "VMDK"},
	{0, "COWD", "VMDK"},
	{0, "# Disk DescriptorFile", "VMDK"},
	{0, "vhdxfile", "VHDX"},
	{0, vhdMagic, "VHD"},
	{64, "\x7f\x10\xda\xbe", "VDI"},
	{0, "QED\x00", "QED"},
	{0, "WithoutFreeSpace", "Parallels"},
	{0, "WithouFreSpacExt", "Parallels"},
	{0, "<<< ", "VDI"}, // the text before the magic, in a truncated header
	{0, "OOOM", "COW"}, // of user-mode Linux
	{0, "Bochs Virtual HD Image", "Bochs"},
	{0, "#!/bin/sh\n#V2.0 Format\nmodprobe cloop", "cloop"},
}

// Convert returns the advice to convert an image to another format, if the user trusts its author: qemu-img opens the files that a header
// references, so that the content of any file may get into the new image.
func Convert(from, to string) string {
	return "If you trust who wrote it (qemu-img opens every file that the image references, and copies its content), convert it: " +
		ConvertCommand(from, to, "<image>")
}

// ConvertCommand names the format, also if from is empty, because qemu-img would otherwise believe a header that a guest wrote to a raw
// disk.
func ConvertCommand(from, to, path string) string {
	return "qemu-img convert -f " + cmp.Or(from, "<its format>") + " -O " + to + " " + path + " <new image>"
}

// Probe determines the format of an image from its header, and refuses an image for which QEMU would open another file, or need a key.
func Probe(head []byte) (Header, error) { return probe(head, false) }

// ProbeOverlay is Probe for an image that may have a backing file: the caller must configure the backing file, and not use that in the
// header.
func ProbeOverlay(head []byte) (Header, error) { return probe(head, true) }

func probe(head []byte, overlay bool) (Header, error) {
	if len(head) == 0 {
		return Header{}, fmt.Errorf("%w: it is empty", ErrUntrusted)
	}
	if has(head, 0, magicQcow2) {
		return probeQcow2(head, overlay)
	}
	if format := foreignFormat(head); format != "" {
		name := cmp.Or(map[string]string{"VHD": vhdQemuFormat}[format], strings.ToLower(format)) // qemu-img's
		return Header{}, fmt.Errorf("%w: it is in the format %s. %s", ErrUntrusted, format, Convert(name, "qcow2"))
	}
	return Header{Format: "raw"}, nil
}

// foreignFormat returns the unsupported format of a header; empty if there is none. A disk that begins with LUKS is supported: its guest
// encrypts it.
func foreignFormat(head []byte) string {
	for _, m := range magics {
		if has(head, m.offset, m.magic) {
			return m.format
		}
	}
	if vmdkText.Match(head) {
		return "VMDK"
	}
	return ""
}

// vmdkText matches the header that QEMU recognizes as a VMDK with references to other files: the first line that is neither a comment nor
// empty.
var vmdkText = regexp.MustCompile(`\A(?:#[^\n]*\n|[ ]*\r?\n)*version=[123]\r?\n`)

func has(head []byte, offset int, magic string) bool {
	return len(head) >= offset+len(magic) && string(head[offset:offset+len(magic)]) == magic
}
