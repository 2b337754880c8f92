package host

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// maxHostFile is how many bytes of a file libvirt returns in one call.
const maxHostFile = 4 << 20

// settleTries is how often a changing table is read again.
const settleTries = 20

// ReadFile reads the beginning of a file of the host, up to limit bytes. libvirt opens the path, which follows symbolic links and
// waits at a FIFO: it is for hosts on which File.Irregular is ErrCannotTell.
func (h *Host) ReadFile(ctx context.Context, path string, limit int) ([]byte, error) {
	return call(ctx, h, "read "+path, func(l *libvirt.Libvirt) ([]byte, error) {
		return readHostFile(l, h.inspection(path).name, path, limit)
	})
}

// readHostFile reads a file of the host, of unknown length, up to limit bytes. libvirt only reads files that are disks of a domain: the
// domain of that name is defined for that, never starts, and is undefined afterwards.
func readHostFile(l *libvirt.Libvirt, name, path string, limit int) (content []byte, err error) {
	id := uuid.New() // for concurrent reads
	d, err := l.DomainDefineXML(diskDomain(name+"-"+id.String()[:8], id, fileDisk("vda", path)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.DomainUndefineFlags(d, 0)) }()
	return readUpTo(limit, peekAt(l, d, "vda"))
}

// peek reads the first bytes of a file, and fails if it has fewer.
type peek func(size int) ([]byte, error)

func peekAt(l *libvirt.Libvirt, d libvirt.Domain, target string) peek {
	return func(size int) ([]byte, error) { return l.DomainBlockPeek(d, target, 0, uint32(size), 0) }
}

// fileDisk is the <disk> element that reads a file, with that target.
func fileDisk(target, path string) string {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(path)) // a strings.Builder never returns an error
	return fmt.Sprintf("<disk type='file'><driver name='qemu' type='raw'/><source file='%s'/><target dev='%s' "+
		"bus='virtio'/><readonly/></disk>",
		escaped.String(), target)
}

// readUpTo reads a file up to limit bytes, although peek fails for sizes beyond its end: the error has the file's length.
func readUpTo(limit int, peek peek) ([]byte, error) {
	for size := limit; ; {
		content, err := peek(size)
		length := available(err)
		if err == nil || length == 0 || length >= size {
			return content, err
		}
		size = length
	}
}

var numbers = regexp.MustCompile(`[0-9]+`)

// available is the number of bytes that a file has, by the error of a peek beyond its end, which has no field for it; 0 for another error.
// The text may be translated: its numbers are the offset, which is 0, and this one.
func available(err error) (most int) {
	var e libvirt.Error
	if !isCode(err, libvirt.ErrInvalidArg) || !errors.As(err, &e) {
		return 0
	}
	for _, digits := range numbers.FindAllString(e.Message, -1) {
		n, err := strconv.Atoi(digits)
		if err != nil {
			return 0
		}
		most = max(most, n)
	}
	return most
}
