package rootfs_test

import (
	"errors"
	"io"
	"os"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/rootfs"
)

// apply applies a layer, and writes its image into a file.
func apply(f *rootfs.FileSystem, layer io.Reader, name, backing string) error {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	head, err := f.Apply(layer, io.NewOffsetWriter(out, rootfs.HeadSize), backing)
	if err == nil {
		_, err = out.WriteAt(head, 0)
	}
	return errors.Join(err, out.Close())
}
