package direct

import (
	"cmp"
	"context"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// File is an image in a file of the hosts. The header of a qcow2 image can reference other files of the host, and any writer of the file
// could have changed it: it is checked before the file is opened as qcow2.
type File struct {
	// Path is absolute, and the same on all hosts.
	Path string
	// Format is raw or qcow2; empty is raw.
	Format string
}

// Validate checks everything that can be checked offline. It joins one source.Error for each invalid attribute.
func (f File) Validate() error {
	_, err := f.Storage()
	return err
}

// Storage returns the file, without capacity.
func (f File) Storage() (volume.Volume, error) {
	var w fieldErrors
	path, err := source.FilePath(f.Path)
	w.add("path", err)
	if f.Format != "" && f.Format != "raw" && f.Format != "qcow2" {
		w.add("format", fmt.Errorf("is %q, but only raw and qcow2 images can be opened", f.Format))
	}
	if err := w.err(); err != nil {
		return volume.Volume{}, err
	}
	v := source.FileVolume(path, nil)
	v.Images[0].Format = cmp.Or(f.Format, v.Images[0].Format)
	return v, nil
}

// Resolve returns the volume. It needs no other system.
func (f File) Resolve(context.Context, source.SecretReader) (source.Resolved, error) {
	return resolved(f.Storage())
}

// Block is a block device of the hosts.
type Block struct {
	// Path is absolute, and leads to the same storage on all hosts: rather a link below /dev/disk/by-id than /dev/sdb.
	Path string
}

// Validate checks everything that can be checked offline. It joins one source.Error for each invalid attribute.
func (b Block) Validate() error {
	_, err := b.Storage()
	return err
}

// Storage returns the device, without capacity.
func (b Block) Storage() (volume.Volume, error) {
	var w fieldErrors
	path, err := source.FilePath(b.Path)
	w.add("path", err)
	if err := w.err(); err != nil {
		return volume.Volume{}, err
	}
	return source.BlockVolume(path, nil), nil
}

// Resolve returns the volume. It needs no other system.
func (b Block) Resolve(context.Context, source.SecretReader) (source.Resolved, error) {
	return resolved(b.Storage())
}
