package volume

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/iscsi"
)

// stream serves the disks of container images over iSCSI, read-only: the first as LUN 0, and so on.
type stream struct {
	// folder keeps the disks. What a former container has put there is served again, also if its tag has another image by now: the disks of
	// machines may lie above it.
	folder string
	images []image.Container
	target iscsi.Target
	log    func(string)
}

// serve copies the images, and then serves them until the context ends. Nothing listens before all are there.
func (s *stream) serve(ctx context.Context, address string) error {
	for n, from := range s.images {
		path, err := s.disk(ctx, from)
		if err != nil {
			return err
		}
		disk, err := iscsi.OpenFile(path, true)
		if err != nil {
			return err
		}
		defer func() { _ = disk.Close() }()
		if err := s.target.Add(uint16(n), iscsi.LUN{Disk: disk, ReadOnly: true}); err != nil {
			return err
		}
		s.log(fmt.Sprintf("LUN %d is the disk of %s, %d bytes", n, from.Reference, disk.Size()))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	s.log(fmt.Sprintf("serves %s at %s", s.target.Name, address))
	return s.target.Serve(ctx, listener)
}

// disk returns the path of an image's disk.
func (s *stream) disk(ctx context.Context, from image.Container) (path string, err error) {
	of := sha256.Sum256([]byte(strings.Join([]string{from.Reference, from.Path, from.Arch}, "\x00")))
	c := Claim{Path: filepath.Join(s.folder, hex.EncodeToString(of[:8])), Scratch: s.folder}
	path = filepath.Join(c.Path, diskImage)
	if err := os.MkdirAll(c.Path, 0o770); err != nil { //nolint:gosec // for other users of the volume's group
		return path, err
	}
	if is, err := c.inspect(); err == nil && is.State == podwire.IsFilled && is.Filled != nil {
		s.log(fmt.Sprintf("%s is there already, %s", from.Reference, is.Digest))
		return path, nil
	}
	_, err = c.copyImage(ctx, from, s.log)
	return path, err
}

// login reads what initiators must log in with: a mounted Secret with the keys of Kubernetes' iSCSI volumes (type
// kubernetes.io/iscsi-chap).
func login(folder string) (*iscsi.Credentials, error) {
	if folder == "" {
		return nil, nil
	}
	var c iscsi.Credentials
	for key, to := range map[string]*string{"node.session.auth.username": &c.User, "node.session.auth.password": &c.Secret} {
		text, err := os.ReadFile(filepath.Join(folder, key))
		if err != nil {
			return nil, err
		}
		if *to = string(text); *to == "" {
			return nil, errors.New("there is nothing in " + filepath.Join(folder, key))
		}
	}
	return &c, nil
}
