package content

import (
	"context"
	"fmt"
	"path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Format is the format in which a volume must be opened that is in no state.
type Format struct {
	// Name is raw or qcow2.
	Name string
	// Domain is a domain that opens the volume in that format; empty without one.
	Domain string
	// Noted is the usage of the ledger's entry that records raw; empty without one.
	Noted string
	// Refused is why the volume can't be opened in the format of its header: then Name is raw, unless a domain opens it as qcow2. An overlay is not
	// refused because of its backing file, which is always specified explicitly when it is opened.
	Refused error
}

// String describes the format and its source.
func (f Format) String() string {
	switch {
	case f.Domain != "":
		return fmt.Sprintf("domain %s opens it as %s", f.Domain, f.Name)
	case f.Noted != "":
		return fmt.Sprintf("the ledger of its host says that it is raw (virsh secret-list has it as \"volume %s\"; to remove the entry if it is wrong: "+
			"virsh secret-undefine <its UUID>)", f.Noted)
	case f.Refused != nil:
		return f.Refused.Error()
	}
	return "its head is that of a " + f.Name + " image"
}

// FormatOf determines the format in which a volume must be opened. A domain that opens it as raw decides, and if no domain has it, the ledger:
// the header of such a volume was written by a guest. Otherwise its header is read, without opening the image, because QEMU would open the files
// in the header.
func FormatOf(ctx context.Context, h Host, v host.StorageVolume) (Format, error) {
	domains, err := h.Domains(ctx)
	if err != nil {
		return Format{}, err
	}
	opened, err := openedAs(domains, v)
	if err != nil {
		return Format{}, err
	}
	if raw := opened["raw"]; raw != "" {
		return Format{Name: "raw", Domain: raw}, contradiction(v, opened)
	}
	if len(opened) == 0 {
		if noted, err := notedRaw(ctx, h, v); err != nil || noted {
			return Format{Name: "raw", Noted: ledgerUsage(v.Pool, v.Name)}, err
		}
	}
	head, err := h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
	if err != nil || len(head) == 0 {
		return Format{Name: "raw"}, err
	}
	is, refused := image.ProbeOverlay(head)
	switch {
	case refused != nil && opened["qcow2"] != "":
		is.Format = "qcow2" // the guest of a qcow2 disk can't write the header
	case refused != nil:
		is.Format = "raw"
	}
	return Format{Name: is.Format, Domain: opened[is.Format], Refused: refused}, nil
}

// contradiction is the error of a volume that one domain has as raw and another one in another format, such as an image in a rescue machine:
// either the header is that of the second domain's image, or the first one's guest has written it.
func contradiction(v host.StorageVolume, opened map[string]string) error {
	for format, domain := range opened {
		if format != "raw" {
			return fmt.Errorf("the format of volume %s in storage pool %s is not known: domain %s has it as raw, and domain %s as %s. Take it out of the "+
				"one that is wrong (virsh detach-disk --config), and undo what that has written", v.Name, v.Pool, opened["raw"], domain, format)
		}
	}
	return nil
}

// openedAs returns the formats in which domains have a volume, each with the name of such a domain.
func openedAs(domains []host.Domain, v host.StorageVolume) (map[string]string, error) {
	opened := map[string]string{}
	err := eachUse(domains, v, func(d host.Domain, _ domainxml.Metadata, i volume.Image) { opened[i.Format] = d.Name })
	return opened, err
}

// eachUse calls f for each image of a domain that is the volume: running, saved or stored, at any depth of a chain. Temporary domains that measure
// are skipped, because they open everything as raw.
func eachUse(domains []host.Domain, v host.StorageVolume, f func(host.Domain, domainxml.Metadata, volume.Image)) error {
	return eachImage(domains, func(d host.Domain, metadata domainxml.Metadata, i volume.Image) {
		if isVolume(i, v) {
			f(d, metadata, i)
		}
	})
}

// eachImage calls f for each image of the domains, with the same definitions and exceptions as eachUse.
func eachImage(domains []host.Domain, f func(host.Domain, domainxml.Metadata, volume.Image)) error {
	for _, d := range domains {
		if d.IsProbe() {
			continue
		}
		for _, text := range []string{d.Live, d.Saved, d.Stored} {
			if text == "" {
				continue
			}
			from, err := domainxml.Read(text)
			if err != nil {
				return fmt.Errorf("domain %s: %w", d.Name, err)
			}
			for _, a := range from.Attached() {
				for _, i := range a.Volume.Images {
					f(d, from.Metadata(), i)
				}
			}
		}
	}
	return nil
}

func isVolume(i volume.Image, v host.StorageVolume) bool {
	switch i.Type {
	case "network":
		return false
	case "volume":
		return i.Name == v.Pool+"/"+v.Name
	}
	return path.Clean(i.Name) == path.Clean(v.Path)
}

// witness is a host that lists its domains, and the records of volumes.
type witness interface {
	ledger
	VolumeHead(ctx context.Context, pool, name string, n uint64) ([]byte, error)
	HasLength(ctx context.Context, pool, name string, bytes int64) (bool, error)
	Domains(ctx context.Context) ([]host.Domain, error)
}

// overlays are the volumes whose headers name another one as their backing file. The headers of raw volumes are ignored, because guests can write
// them.
func overlays(ctx context.Context, h Host, of master) ([]host.StorageVolume, error) {
	found, err := h.Overlays(ctx)
	if err != nil {
		return nil, err
	}
	return trueOverlays(ctx, h, found, of, isNoted)
}

// isNoted reports whether virtclaim has attached an image to a domain. An overlay that was attached as raw manually, such as to a rescue machine, is
// still an overlay, whose master must not be deleted.
func isNoted(i volume.Image) bool { return i.Generation != "" || i.Binding != "" }

// trueOverlays are those of volumes whose headers were not written by the guest of a raw disk. A guest has written the header if all domains have
// the volume as raw, and one of them proves it, or if the ledger records it as raw.
func trueOverlays(
	ctx context.Context, h witness, found []host.StorageVolume, of master, proves func(volume.Image) bool,
) ([]host.StorageVolume, error) {
	found, err := mayBeOver(ctx, h, found, of)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	domains, err := h.Domains(ctx)
	if err != nil {
		return nil, err
	}
	var all []host.StorageVolume
	for _, v := range found {
		is, err := isOverlay(ctx, h, domains, v, proves)
		if err == nil && is {
			is, err = of.isNamed(ctx, v.Backing, v)
		}
		if err != nil {
			return nil, err
		}
		if is {
			all = append(all, v)
		}
	}
	return all, nil
}

// mayBeOver are those of volumes whose headers may reference the master, with the reference.
func mayBeOver(ctx context.Context, h witness, volumes []host.StorageVolume, of master) (over []host.StorageVolume, err error) {
	for _, v := range volumes {
		if v.Undescribed {
			if v.Backing, err = Named(ctx, h, v); ignoreNotFound(err) != nil {
				return nil, err
			}
		}
		if v.Backing == "" {
			continue
		}
		may, err := of.mayBeNamed(ctx, v.Backing, v)
		if err != nil {
			return nil, err
		}
		if may {
			over = append(over, v)
		}
	}
	return over, nil
}

func isOverlay(ctx context.Context, h witness, domains []host.Domain, v host.StorageVolume, proves func(volume.Image) bool) (bool, error) {
	asRaw, asOther := false, false
	err := eachUse(domains, v, func(_ host.Domain, _ domainxml.Metadata, i volume.Image) {
		asRaw, asOther = asRaw || i.Format == "raw" && proves(i), asOther || i.Format != "raw"
	})
	if err != nil || asRaw || asOther {
		return asOther, err
	}
	if v.Undescribed {
		if v.Physical, err = notedLength(ctx, h, v); err != nil {
			return false, ignoreNotFound(err)
		}
	}
	isRaw, err := notedRaw(ctx, h, v)
	return !isRaw, err
}

// Named is the backing file in the header of a volume, as an absolute path if it is a file; empty without one. It is for volumes that libvirt
// can't describe.
func Named(ctx context.Context, h interface {
	VolumeHead(ctx context.Context, pool, name string, n uint64) ([]byte, error)
}, v host.StorageVolume,
) (string, error) {
	head, err := h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
	name, _ := image.Backing(head)
	if err != nil || name == "" {
		return "", err
	}
	return absolute(name, v.Path), nil
}
