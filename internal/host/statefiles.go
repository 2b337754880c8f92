package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// statePrefix is the prefix of the names of the pools over the folders with the state of domains.
const statePrefix = "virtclaim-state-"

// maxStateFile is in bytes: the variables of a UEFI firmware have up to 64 MiB, the state of a TPM some KiB.
const maxStateFile = 128 << 20

// ReadStateFiles reads the files of a folder in which libvirt keeps state of domains, such as /var/lib/libvirt/qemu/nvram: those of the
// given names, or all without names. One that is not there is left out, also with its folder. Hidden files, such as locks, are none.
func (h *Host) ReadStateFiles(ctx context.Context, folder string, names ...string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := h.withState(ctx, "read the state in "+folder, folder, false, func(l *libvirt.Libvirt, p libvirt.StoragePool) error {
		volumes, _, err := l.StoragePoolListAllVolumes(p, 1, 0)
		if err != nil {
			return err
		}
		for _, v := range volumes {
			if v.Name[0] == '.' || len(names) > 0 && !slices.Contains(names, v.Name) {
				continue
			}
			if files[v.Name], err = h.VolumePart(ctx, p.Name, v.Name, 0, maxStateFile); err != nil {
				return err
			}
		}
		return nil
	})
	return files, err
}

// WriteStateFiles writes such files, in place of those of their names, and reads them back. libvirt makes them its own when it starts the
// domain. Only the host's root can read them until then.
func (h *Host) WriteStateFiles(ctx context.Context, folder string, files map[string][]byte) error {
	return h.withState(ctx, "write the state in "+folder, folder, true, func(l *libvirt.Libvirt, p libvirt.StoragePool) error {
		for name, content := range files {
			if err := h.writeStateFile(ctx, l, p, name, content); err != nil {
				return err
			}
		}
		return nil
	})
}

func (h *Host) writeStateFile(ctx context.Context, l *libvirt.Libvirt, p libvirt.StoragePool, name string, content []byte) error {
	if left, err := l.StorageVolLookupByName(p, name); err == nil {
		if err := l.StorageVolDelete(left, 0); err != nil {
			return err
		}
	}
	v := libvirtxml.StorageVolume{
		Name: name, Capacity: &libvirtxml.StorageVolumeSize{Value: uint64(len(content))},
		Target: &libvirtxml.StorageVolumeTarget{
			Format:      &libvirtxml.StorageVolumeTargetFormat{Type: "raw"},
			Permissions: &libvirtxml.StorageVolumeTargetPermissions{Mode: "0600"},
		},
	}
	text, err := v.Marshal()
	if err != nil {
		return err
	}
	if _, err := l.StorageVolCreateXML(p, text, 0); err != nil {
		return err
	}
	return h.WriteVolumeHead(ctx, p.Name, name, content)
}

// withState calls f with a pool over the folder. A missing folder is made, or else f is not called.
func (h *Host) withState(ctx context.Context, op, folder string, makes bool, f func(*libvirt.Libvirt, libvirt.StoragePool) error) error {
	sum := sha256.Sum256([]byte(folder))
	name := statePrefix + hex.EncodeToString(sum[:8])
	release, err := h.folders.lock(ctx, name)
	if err != nil {
		return h.failed(op, err)
	}
	defer release()
	return do(ctx, h, op, func(l *libvirt.Libvirt) error {
		p, err := openState(ctx, l, name, folder, makes)
		if err != nil || p.Name == "" {
			return err
		}
		return errors.Join(f(l, p), endPassing(l, p))
	})
}

// openState opens a pool over a folder; without a name if there is none.
func openState(ctx context.Context, l *libvirt.Libvirt, name, folder string, makes bool) (p libvirt.StoragePool, err error) {
	// libvirt compares the texts of targets, and refuses a second pool with the same one.
	pool := libvirtxml.StoragePool{Type: "dir", Name: name, Target: &libvirtxml.StoragePoolTarget{Path: path.Clean(folder) + "/."}}
	xml, err := pool.Marshal()
	if err != nil {
		return p, err
	}
	err = takePool(ctx, l, name, func() (err error) {
		p, err = l.StoragePoolCreateXML(xml, 0)
		if !isCode(err, libvirt.ErrSystemError) {
			return err
		}
		// There is no such folder.
		p = libvirt.StoragePool{}
		if !makes {
			return nil
		}
		pool.Target.Permissions = &libvirtxml.StoragePoolTargetPermissions{Mode: "0700"}
		if xml, err = pool.Marshal(); err != nil {
			return err
		}
		p, err = l.StoragePoolCreateXML(xml, libvirt.StoragePoolCreateWithBuild)
		return err
	}, func(left libvirt.StoragePool) error { return endPassing(l, left) })
	if err != nil {
		return p, fmt.Errorf("open folder %s: %w", folder, err)
	}
	return p, nil
}
