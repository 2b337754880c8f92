// Package image is bytes: where the content of a disk comes from, and what it may be. It knows neither libvirt, Terraform nor
// Kubernetes.
package image

import (
	"errors"
	"fmt"
	"regexp"
)

// Header is what the beginning of an image tells of it.
type Header struct {
	// Format is QEMU's: raw or qcow2. All that has no head of its own is raw.
	Format string
	// Capacity is what a guest sees, in bytes; 0 of a raw image, whose length it is.
	Capacity int64
}

// HeadSize is how many bytes of an image Probe wants, or all of a shorter one. The head of a qcow2 image is one cluster, of
// at most 2 MiB, of which only the beginning is in use.
const HeadSize = 64 << 10

// MaxCapacity is how large a disk may claim to be, in bytes: what is larger is a mistake or an attack.
const MaxCapacity = 64 << 40

// ErrUntrusted is the error of an image that asks for more than to be a disk.
var ErrUntrusted = errors.New("the image is refused")

// magics are the heads of formats that are not taken, by where they are.
var magics = []struct {
	offset int
	magic  string
	format string
}{
	{0, "KDMV", "VMDK"},
	{0, "COWD", "VMDK"},
	{0, "# Disk DescriptorFile", "VMDK"},
	{0, "vhdxfile", "VHDX"},
	{0, "conectix", "VHD"},
	{64, "\x7f\x10\xda\xbe", "VDI"},
	{0, "QED\x00", "QED"},
	{0, "WithoutFreeSpace", "Parallels"},
	{0, "WithouFreSpacExt", "Parallels"},
	{0, "<<< ", "VDI"}, // the text before the magic, in a head that is cut off
	{0, "OOOM", "COW"}, // of user-mode Linux
	{0, "Bochs Virtual HD Image", "Bochs"},
	{0, "#!/bin/sh\n#V2.0 Format\nmodprobe cloop", "cloop"},
}

// Convert is the advice to make another image of one, in that format, for whoever trusts it: qemu-img opens what a head names, so that the
// content of any file may get into the new image.
func Convert(format string) string {
	return "If you trust who wrote it (qemu-img opens every file that the image references, and copies its content), convert it: qemu-img convert -O " +
		format + " <image> <new>"
}

// Probe tells what an image is by its head, and refuses one that QEMU would open anything else for: another file, or a key.
func Probe(head []byte) (Header, error) { return probe(head, false) }

// ProbeOverlay is Probe of an image that may have a backing file: whoever opens it must say which, and not believe the head.
func ProbeOverlay(head []byte) (Header, error) { return probe(head, true) }

func probe(head []byte, overlay bool) (Header, error) {
	if len(head) == 0 {
		return Header{}, fmt.Errorf("%w: it is empty", ErrUntrusted)
	}
	if has(head, 0, magicQcow2) {
		return probeQcow2(head, overlay)
	}
	if format := foreignFormat(head); format != "" {
		return Header{}, fmt.Errorf("%w: it is in the format %s. %s", ErrUntrusted, format, Convert("qcow2"))
	}
	return Header{Format: "raw"}, nil
}

// foreignFormat is empty for what has no head of its own. A disk that begins with LUKS is one: its guest encrypts it.
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

// vmdkText is what QEMU takes for a VMDK that names other files: its first line that is neither a comment nor empty.
var vmdkText = regexp.MustCompile(`\A(?:#[^\n]*\n|[ ]*\r?\n)*version=[123]\r?\n`)

func has(head []byte, offset int, magic string) bool {
	return len(head) >= offset+len(magic) && string(head[offset:offset+len(magic)]) == magic
}
