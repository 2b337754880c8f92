package content

import (
	"context"
	"iter"
	"path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Opened are the images of a host's domains: running, saved or stored, at any depth of a chain.
type Opened []openedImage

type openedImage struct {
	volume.Image
	domain   domainxml.Definitions
	metadata domainxml.Metadata
}

// OpenedBy are the images of those domains. A folder is none.
func OpenedBy(domains []domainxml.Definitions) (all Opened) {
	for _, d := range domains {
		for _, from := range []*domainxml.Domain{d.Live, d.Saved, d.Stored} {
			if from == nil {
				continue
			}
			for _, a := range from.Attached() {
				if a.IsFolder() {
					continue
				}
				for _, i := range a.Volume.Images {
					all = append(all, openedImage{i, d, from.Metadata()})
				}
			}
		}
	}
	return all
}

// openedOn are those of a host. Temporary domains that measure are skipped, because they open everything as raw.
func openedOn(ctx context.Context, h guard.Looker) (Opened, error) {
	domains, err := guard.List(ctx, h)
	return OpenedBy(domains), err
}

// of are those of a volume.
func (all Opened) of(v host.StorageVolume) iter.Seq[openedImage] {
	return func(yield func(openedImage) bool) {
		for _, i := range all {
			if i.isVolume(v) && !yield(i) {
				return
			}
		}
	}
}

func (i openedImage) isVolume(v host.StorageVolume) bool {
	switch i.Type {
	case "network":
		return false
	case "volume":
		return i.Name == v.Pool+"/"+v.Name
	}
	return path.Clean(i.Name) == path.Clean(v.Path)
}

// isNoted reports whether virtclaim has attached the image to the domain. An overlay that was attached as raw manually, such as to a rescue
// machine, is still an overlay, whose master must not be deleted.
func (i openedImage) isNoted() bool { return i.Generation != "" || i.Binding != "" }
