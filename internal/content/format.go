package content

import (
	"context"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// Format is the format in which a volume must be opened that is in no state.
type Format struct {
	// Name is raw or qcow2.
	Name string
	// Domain is a domain that opens the volume in that format; empty without one.
	Domain string
	// Noted is the usage of the ledger's entry that records raw; empty without one.
	Noted string
	// Refused is why the volume can't be opened in the format of its header: then Name is raw, unless a domain opens it as qcow2. An
	// overlay is not refused because of its backing file, which is always specified explicitly when it is opened.
	Refused error
}

// String describes the format and its source.
func (f Format) String() string {
	switch {
	case f.Domain != "":
		return fmt.Sprintf("domain %s opens it as %s", f.Domain, f.Name)
	case f.Noted != "":
		return fmt.Sprintf("the ledger of its host says that it is raw (virsh secret-list has it as \"volume %s\"; to remove the entry "+
			"if it is wrong: virsh secret-undefine <its UUID>)", f.Noted)
	case f.Refused != nil:
		return f.Refused.Error()
	}
	return "its head is that of a " + f.Name + " image"
}

// FormatOf determines the format in which a volume must be opened. A domain that opens it as raw decides, and if no domain has it, the
// ledger: the header of such a volume was written by a guest. Otherwise its header is read, without opening the image, because QEMU would
// open the files in the header.
func FormatOf(ctx context.Context, h Host, v host.StorageVolume) (Format, error) {
	all, err := openedOn(ctx, h)
	if err != nil {
		return Format{}, err
	}
	opened := map[string]string{} // the name of a domain by the format
	for i := range all.of(v) {
		opened[i.Format] = i.domain.Name
	}
	if raw := opened["raw"]; raw != "" {
		return Format{Name: "raw", Domain: raw}, contradiction(v, opened)
	}
	if len(opened) == 0 {
		e, err := noted(ctx, h, v)
		isRaw := false
		if err == nil {
			isRaw, err = e.isRaw(ctx, h, v)
		}
		if err != nil || isRaw {
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

// contradiction is the error of a volume that one domain has as raw and another one in another format, such as an image in a rescue
// machine: either the header is that of the second domain's image, or the first one's guest has written it.
func contradiction(v host.StorageVolume, opened map[string]string) error {
	for format, domain := range opened {
		if format != "raw" {
			return fmt.Errorf("the format of volume %s in storage pool %s is not known: domain %s has it as raw, and domain %s as %s. "+
				"Take it out of the one that is wrong (virsh detach-disk --config), and undo what that has written", v.Name, v.Pool,
				opened["raw"], domain, format)
		}
	}
	return nil
}
