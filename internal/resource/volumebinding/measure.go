package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guide"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// openTime is the timeout for opening storage. Ceph does not refuse a wrong key: librados retries for five minutes.
const openTime = 30 * time.Second

// knowledge is what is known about the beginning of a volume.
type knowledge int

const (
	// alreadySeen is a volume whose header was checked when it was bound: a guest may have written another one since.
	alreadySeen knowledge = iota
	// unseen is a volume that is bound for the first time, but a machine may already have it.
	unseen
	// madeAgain is a file that may have replaced the one that machines have: the format that they open proves nothing about it.
	madeAgain
)

// isDiskImage reports whether a volume is the disk.img of a filesystem.
func isDiskImage(v volume.Volume) bool {
	return path.Base(v.Images[0].Name) == "disk.img" && !v.Images[0].IsFolder()
}

// prepare creates a disk.img if it is configured, and measures a volume without a known capacity. Ceph storage is opened in any case, on
// each host that got a new key, because with a wrong one a machine would take minutes to fail. The header's format is checked unless the
// volume is alreadySeen.
func (r *binding) prepare(
	ctx context.Context, m model, v *volume.Volume, claimed *int64, fresh []string, known knowledge, diags *diag.Diagnostics,
) error {
	hosts := v.Images[0].Hosts
	if c := m.claim(ctx, diags); c != nil && c.CreateDiskImage.ValueBool() && claimed != nil {
		h, err := r.Provider.Hosts.Host(hosts[0])
		if err != nil {
			return err
		}
		if err := content.MakeDiskImage(ctx, h, v.Images[0].Name, *claimed); err != nil {
			return err
		}
	}
	if auth := v.Images[0].Auth; auth != nil && auth.Type == "ceph" {
		for _, key := range fresh {
			if _, err := r.open(ctx, key, *v, diags); err != nil {
				return err
			}
		}
	}
	if v.Capacity != nil || v.Images[0].IsFolder() {
		return nil
	}
	found, key, err := r.measure(ctx, *v, hosts, diags)
	if err != nil {
		return err
	}
	if known != alreadySeen {
		if found.Head, err = r.head(ctx, m, *v, key, found, diags); err != nil {
			return err
		}
		if err := r.checkFormat(ctx, m, *v, key, found.Head, known, diags); err != nil {
			return err
		}
	}
	bytes, err := content.CapacityAs(v.Images[0].Format, found)
	if err != nil {
		return err
	}
	v.Capacity = &bytes
	return nil
}

// head returns the beginning of the volume as the measuring host has read it. A network image that is a file on its server, where people
// put images of any format, is looked at for that, unless it is said to be raw.
func (r *binding) head(ctx context.Context, m model, v volume.Volume, key string, found host.Measured,
	diags *diag.Diagnostics,
) ([]byte, error) {
	_, asked := m.format(ctx, diags)
	if !slices.Contains([]string{"nfs", "gluster", "http", "https"}, v.Images[0].Protocol) || asked == "raw" {
		return found.Head, nil
	}
	h, err := r.Provider.Hosts.Host(key)
	if err != nil {
		return nil, err
	}
	n := min(image.HeadSize, found.Size)
	part, err := domainxml.PartXML(v, 0, n)
	if err != nil {
		return nil, err
	}
	patient, cancel := context.WithTimeoutCause(ctx, openTime, fmt.Errorf("no answer within %s", openTime))
	defer cancel()
	head, err := h.NetworkHead(patient, part, n)
	if err != nil {
		err = fmt.Errorf("whether %s is raw is not known: %w. Set format = \"raw\" if it is", v.Images[0].Name, err)
	}
	return head, err
}

// measureAgain is prepare for an update. A claim that was recreated is measured like one that is bound for the first time. Otherwise a
// disk.img is created only if create_disk_image was just set: one that is missing later is missing because nothing is mounted.
func (c *change) measureAgain(ctx context.Context, fresh []string) error {
	if c.own.Remade {
		return c.prepare(ctx, c.plan, &c.actual, c.found.Volume.Capacity, fresh, madeAgain, c.diags)
	}
	if c.actual.Capacity == nil && !c.resized {
		c.actual.Capacity = c.state.capacityOf(c.actual, c.diags)
	}
	var claimed *int64
	was, is := c.state.claim(ctx, c.diags), c.plan.claim(ctx, c.diags)
	if was != nil && is != nil && !was.CreateDiskImage.Equal(is.CreateDiskImage) {
		claimed = c.found.Volume.Capacity
	}
	return c.prepare(ctx, c.plan, &c.actual, claimed, fresh, alreadySeen, c.diags)
}

// measure returns the size of a volume from the first host that can open it, and that host's key.
func (r *binding) measure(ctx context.Context, v volume.Volume, hosts []string,
	diags *diag.Diagnostics,
) (found host.Measured, key string, err error) {
	var failed []error
	for _, key := range hosts {
		found, err := r.open(ctx, key, v, diags)
		if err == nil {
			return found, key, nil
		}
		failed = append(failed, err)
	}
	err = fmt.Errorf("no host can open the volume: %w", errors.Join(failed...))
	if isDiskImage(v) {
		err = fmt.Errorf("%w\n\nIf there is no disk.img on the volume yet, set create_disk_image, or put one there. If %s is the image "+
			"itself, not a folder, rename it to disk.img in a folder of its own, which the PersistentVolume must name", err,
			path.Dir(v.Images[0].Name))
	}
	return found, "", err
}

// open has a host open the volume as raw, and returns its size and, where libvirt can read it, its header.
func (r *binding) open(ctx context.Context, key string, v volume.Volume, diags *diag.Diagnostics) (found host.Measured, err error) {
	h, err := r.Provider.Hosts.Host(key)
	if err != nil {
		return found, err
	}
	xml, err := domainxml.DiskXML(asRaw(v))
	if err != nil {
		return found, err
	}
	head := uint32(image.HeadSize)
	if v.Images[0].Type == "network" {
		head = 0
	}
	patient, cancel := context.WithTimeoutCause(ctx, openTime, fmt.Errorf("no answer within %s", openTime))
	defer cancel()
	top := v.Images[0]
	if top.Type == "file" {
		found, err = measureFile(patient, r.Provider.Files.Fresh(h), top.Name, xml, diags)
	} else {
		found, err = h.Measure(patient, xml, head)
	}
	if err == nil && found.Size == 0 {
		err = errors.New("it has a size of 0 bytes")
	}
	if err != nil {
		return found, explainOpen(err, key, top)
	}
	return found, nil
}

// explainOpen adds to the error of opening an image how its storage is asked for it.
func explainOpen(err error, key string, top volume.Image) error {
	err = fmt.Errorf("host %s can't open %s%s: %w", key, top.Name, at(top), err)
	switch {
	case top.Auth != nil:
		return fmt.Errorf("%w\n\nIt asks as the user %s with the libvirt secret %s. Check that user and the password or key, where you "+
			"took them from", err, top.Auth.Username, top.Auth.SecretUUID)
	case top.Protocol == "nfs":
		return fmt.Errorf("%w\n\nIt asks as uid %s and gid %s. A server with root_squash maps 0 to the anonymous user: set uid "+
			"and gid to the owner of the file (107 for KubeVirt's)", err, top.User, top.Group)
	case top.Protocol == "http" || top.Protocol == "https":
		return fmt.Errorf("%w\n\nQEMU asks with HEAD first, and then for ranges (Accept-Ranges: bytes). A server that answers only GET, "+
			"as with a URL that is signed for that, refuses it: try curl --head <url> on the host. A virtclaim_disk with source.url "+
			"downloads the image with GET only", err)
	}
	return err
}

// measureFile looks at a file before the host's QEMU opens it, which would follow a link. libvirtd does not open it, except on a host that
// can't tell links from files, or whose root may not read it: a FIFO would block libvirtd for ever.
func measureFile(ctx context.Context, h content.CachedHost, path, diskXML string,
	diags *diag.Diagnostics,
) (found host.Measured, err error) {
	found, err = content.MeasureFile(ctx, h, path)
	cannotTell := errors.Is(err, host.ErrCannotTell)
	if cannotTell {
		warnOfLinks(h.Key, path, err, diags)
	} else if err != nil {
		return found, err
	}
	if err := h.Opens(ctx, diskXML); err != nil {
		return found, err
	}
	if cannotTell {
		return h.Measure(ctx, diskXML, image.HeadSize)
	}
	return found, nil
}

// warnOfLinks warns that the host can't tell whether a file is regular.
func warnOfLinks(key, path string, err error, diags *diag.Diagnostics) {
	diags.AddWarning("Symbolic links are followed", fmt.Sprintf("%s\n\nNothing shows whether %s is a symbolic link on host "+
		"%s. With one, a pod that mounts the claim can expose any file of the host: mount the volume with nosymfollow. "+
		guide.See+"security#links-in-folders-that-pods-write-to", err, path, key))
}

// at lists the servers of an image.
func at(i volume.Image) (text string) {
	for n, s := range i.Servers {
		text += []string{" at ", ", "}[min(n, 1)] + s.Host + s.Socket
		if s.Port != nil {
			text += fmt.Sprintf(":%d", *s.Port)
		}
	}
	return text
}
