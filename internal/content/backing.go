package content

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ErrRebased is the error of an overlay that is over something else than its chain says: where it has nothing of its own, its guest would
// find what the other image has there by now.
var ErrRebased = errors.New("it was pulled or rebased outside of Terraform (virsh blockpull, qemu-img rebase); attached to that image it would be a " +
	"mix of two disks. " + domainxml.TakeCut)

// RecognizeChain is RecognizeImage for each image of a chain, top first, and CheckBacking.
func RecognizeChain(ctx context.Context, h Locator, chain []volume.Image) error {
	for _, i := range chain {
		if err := RecognizeImage(ctx, h, i); err != nil {
			return err
		}
	}
	return CheckBacking(ctx, h, chain)
}

// CheckBacking is ErrRebased for a chain, top first, with an overlay of this host whose head names no backing file, or another one than
// the image below it.
func CheckBacking(ctx context.Context, h Locator, chain []volume.Image) error {
	for n := range max(len(chain)-1, 0) {
		top, below := chain[n], chain[n+1]
		named, told, err := backingOf(ctx, h, top)
		if err != nil {
			return err
		}
		if told && IsOther(named, top.Name, below) {
			return fmt.Errorf("the image %s is no overlay of %s any more, its head names %s as its backing file: %w",
				top.Name, below.Name, orNothing(named), ErrRebased)
		}
	}
	return nil
}

func orNothing(named string) string {
	if named == "" {
		return "nothing"
	}
	return named
}

// backingOf is what the head of an overlay of this host names. Of an image that is in no storage pool, or that another one has the path of,
// nothing is told.
func backingOf(ctx context.Context, h Locator, top volume.Image) (named string, told bool, err error) {
	if top.Type != "file" || top.Generation == "" || top.Format != "qcow2" {
		return "", false, nil
	}
	v, err := h.VolumeAt(ctx, top.Name)
	if err != nil || !hasHeader(v, top.Format) {
		return "", false, found(err)
	}
	head, err := h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
	if err != nil {
		return "", false, found(err)
	}
	if id := image.Identity(head); id != "" && id != volume.LastingGeneration(top.Generation) {
		return "", false, nil
	}
	named, told = image.Backing(head)
	return named, told, nil
}

// IsOther tells whether what the head of an overlay names is known not to be an image. An overlay of network storage names nothing, as
// libvirt can't make one that does, and such storage has many names.
func IsOther(named, overlay string, below volume.Image) bool {
	named = strings.TrimPrefix(named, "file:")
	folder, _, _ := strings.Cut(named, "/")
	switch {
	case named == "" || strings.Contains(named, "://"):
		return !below.IsRemote()
	case strings.Contains(folder, ":"): // another of QEMU's protocols, such as json:
		return false
	case !path.IsAbs(named):
		named = path.Join(path.Dir(overlay), named)
	}
	same, clear := volume.SameMaster(volume.Image{Type: "file", Name: named, Hosts: below.Hosts}, below)
	return clear && !same
}
