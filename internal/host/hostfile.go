package host

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// maxHostFile is how many bytes of a file libvirt returns in one call; a power of two.
const maxHostFile = 4 << 20

// settleTries is how often a changing file is read again.
const settleTries = 20

// ReadFile reads the beginning of a file of the host, up to limit bytes. libvirt opens the path, which follows symbolic links and
// waits at a FIFO: it is for hosts on which RegularFile is ErrCannotTell.
func (h *Host) ReadFile(ctx context.Context, path string, limit int) ([]byte, error) {
	return call(ctx, h, "read "+path, func(l *libvirt.Libvirt) ([]byte, error) {
		return readHostFile(l, h.look(path).name, path, limit)
	})
}

// readHostFile reads a file of the host, of unknown length, up to limit bytes. libvirt only reads files that are disks of a domain: the domain of
// that name is defined for that, never starts, and is undefined afterwards.
func readHostFile(l *libvirt.Libvirt, name, path string, limit int) (content []byte, err error) {
	id := uuid.New() // for concurrent reads
	d, err := l.DomainDefineXML(diskDomain(name+"-"+id.String()[:8], id, fileDisk(path)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.DomainUndefineFlags(d, 0)) }()
	peek := func(size int) ([]byte, error) { return l.DomainBlockPeek(d, "vda", 0, uint32(size), 0) }
	return readUpTo(limit, peek)
}

// fileDisk is the <disk> element that reads a file, with the target vda.
func fileDisk(path string) string {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(path)) // a strings.Builder never returns an error
	return "<disk type='file'><driver name='qemu' type='raw'/><source file='" + escaped.String() + "'/><target dev='vda' bus='virtio'/><readonly/></disk>"
}

// readUpTo reads a file up to limit bytes, although peek fails for sizes beyond its end. A file that changes meanwhile, as the kernel's tables
// do, is read again until it is stable.
func readUpTo(limit int, peek func(size int) ([]byte, error)) (content []byte, err error) {
	for range settleTries {
		content, err = longest(limit, peek)
		if len(content) == 0 || len(content) == limit {
			return content, err
		}
		_, longer := peek(len(content) + 1)
		again, failed := peek(len(content))
		if longer != nil && failed == nil && bytes.Equal(again, content) {
			return content, nil
		}
	}
	return nil, fmt.Errorf("it changed %d times while it was read", settleTries)
}

// longest is the result of peek for the largest size for which it does not fail.
func longest(limit int, peek func(size int) ([]byte, error)) (content []byte, err error) {
	for step := limit; step > 0; step /= 2 {
		if len(content)+step > limit {
			continue
		}
		more, failed := peek(len(content) + step)
		if failed == nil {
			content = more
		} else {
			err = failed
		}
	}
	if len(content) > 0 {
		err = nil
	}
	return content, err
}
