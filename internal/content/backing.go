package content

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guide"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ErrRebased is the error of an overlay whose backing file is not the one in its chain: its guest would read the data of another image
// where the overlay has none.
var ErrRebased = errors.New("it was pulled or rebased by hand, or its master was moved; over that it would be a mix of two disks. " +
	domainxml.TakeCut)

// ErrNamesBacking is the error of an image without a master whose header references a backing file. Neither virtclaim nor the disk's guest
// writes such a reference: the image was opened as raw elsewhere, or converted into an overlay.
var ErrNamesBacking = errors.New("the disk was created or imported without one. What opened it as raw may have written that, for the " +
	"guest to read any file of the host. Clear it, or adopt the disk. " + guide.See +
	"troubleshooting#headers-that-name-a-backing-file")

// CheckBacking is ErrRebased for a chain, top first, with an overlay of this host whose header names no backing file, or another one than
// the image below it, ErrNamesBacking for a chain that ends with an image whose header names one, and ErrDataFile. seen may end before the
// chain. The header of an image outside of all storage pools, or whose path another volume has, is not compared.
func CheckBacking(chain []volume.Image, seen []*Seen) error {
	for n, s := range seen {
		top := chain[n]
		if s == nil || len(s.Head) == 0 || s.ID != "" && !s.is(top.Generation) {
			continue
		}
		if image.HasDataFile(s.Head) {
			return fmt.Errorf("volume %s in storage pool %s: %w", s.Name, s.Pool, ErrDataFile)
		}
		named, told := image.Backing(s.Head)
		if !told && image.HasBacking(s.Head) {
			named = farBacking
		}
		switch {
		case n == len(chain)-1 && named != "":
			return fmt.Errorf("the head of the image %s names %q as its backing file, but %w", top.Name, Shown(named), ErrNamesBacking)
		case n < len(chain)-1 && told && IsOther(named, top.Name, chain[n+1]):
			return fmt.Errorf("the image %s is no overlay of %s any more, its head names %s as its backing file: %w",
				top.Name, chain[n+1].Name, Shown(named), ErrRebased)
		}
	}
	return nil
}

// Shown is a printable reference to a backing file: without the query and the user of a URL, and without QEMU's options, which may be
// secret.
func Shown(named string) string {
	if named == "" {
		return "nothing"
	}
	if strings.HasPrefix(named, "json:") {
		return "a json: reference"
	}
	if scheme, _, isURL := strings.Cut(named, "://"); isURL {
		address, err := url.Parse(named)
		if err != nil {
			return scheme + "://..."
		}
		address.User, address.RawQuery, address.Fragment = nil, "", ""
		return address.String()
	}
	if parts := strings.SplitN(named, ":", 3); hasProtocol(named) && len(parts) > 1 {
		return parts[0] + ":" + parts[1]
	}
	return named
}

// farBacking replaces the name of a backing file that is beyond the bytes that were read.
const farBacking = "what is further in the file"

// IsOther reports whether the backing file in the header of an overlay is known not to be the image. An overlay of network storage names
// none, because libvirt can't create one that does, and such storage has many names.
func IsOther(named, overlay string, below volume.Image) bool {
	named = absolute(named, overlay)
	switch {
	case named == "" || strings.Contains(named, "://"):
		return !below.IsRemote()
	case hasProtocol(named): // such as json:, which may have an offset, or other files
		return !below.IsRemote()
	}
	same, certain := volume.SameMaster(volume.Image{Type: "file", Name: named, Hosts: below.Hosts}, below)
	return certain && !same
}

// absolute is the path of the file in the header of an overlay, or the reference itself if it is no file. libvirt and QEMU have several
// notations.
func absolute(named, overlay string) string {
	named = strings.TrimPrefix(named, "file:")
	switch {
	case named == "" || hasProtocol(named):
		return named
	case !path.IsAbs(named):
		named = path.Join(path.Dir(overlay), named)
	}
	return path.Clean(named)
}

func hasProtocol(named string) bool {
	folder, _, _ := strings.Cut(named, "/")
	return strings.Contains(folder, ":")
}
