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
	// Server is a name or an address. The server's portmapper tells the port.
	Server string
	// Path is that of the image on the server, with what it exports.
	Path string
	// UID and GID are as whom QEMU talks to the server; 0 is root, whom servers often take for nobody (root_squash).
	UID, GID int64
}

// Validate checks all that can be known without asking anybody. It joins one source.Error for each wrong attribute.
func (n NFS) Validate() error {
	_, err := n.Storage()
	return err
}

// Storage is the image, without capacity.
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

// checkID has QEMU's limits: it takes a signed number of 32 bits.
func checkID(id int64) error {
	if id < 0 || id > math.MaxInt32 {
		return fmt.Errorf("%d is no numeric identity: they go from 0 to %d", id, math.MaxInt32)
	}
	return nil
}

// Resolve gives the volume. Nothing is asked.
func (n NFS) Resolve(context.Context, source.SecretReader) (source.Resolved, error) {
	return resolved(n.Storage())
}
