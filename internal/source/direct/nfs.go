package direct

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// NFS is a raw image on an NFS server, which QEMU opens itself, with version 3 of the protocol.
type NFS struct {
	// Server is a name or an address. The port is queried from the server's portmapper.
	Server string
	// Path is the path of the image on the server, including the exported path.
	Path string
	// UID and GID are the identity that QEMU uses with the server; 0 is root, which servers often map to nobody (root_squash).
	UID, GID int64
}

// Validate checks everything that can be checked offline. It joins one source.Error for each invalid attribute.
func (n NFS) Validate() error {
	_, err := n.Storage()
	return err
}

// Storage returns the image, without capacity.
func (n NFS) Storage() (volume.Volume, error) {
	var w fieldErrors
	host, err := source.ParseHost(n.Server)
	w.add("server", err)
	path, err := source.FilePath(n.Path)
	w.add("path", err)
	w.add("uid", checkID(n.UID))
	w.add("gid", checkID(n.GID))
	if err := w.err(); err != nil {
		return volume.Volume{}, err
	}
	return source.NFSVolume(host, path, strconv.FormatInt(n.UID, 10), strconv.FormatInt(n.GID, 10), nil), nil
}

// checkID checks QEMU's limits: a signed number of 32 bits.
func checkID(id int64) error {
	if id < 0 || id > math.MaxInt32 {
		return fmt.Errorf("%d is no numeric identity: they go from 0 to %d", id, math.MaxInt32)
	}
	return nil
}

// Resolve returns the volume. It needs no other system.
func (n NFS) Resolve(context.Context, source.SecretReader) (source.Resolved, error) {
	return resolved(n.Storage())
}
