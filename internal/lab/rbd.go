package lab

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// RBD is a Ceph cluster with a pool for block devices.
type RBD struct {
	// Monitors are host:port each.
	Monitors []string
	Pool     string
	// User may use the pool, including its namespaces. It is without "client.", and Key is as in a keyring.
	User, Key string

	dir     string
	sandbox *sandbox

	mu         sync.Mutex
	last       int
	namespaces map[string]bool
}

// RBDSpec describes an image to create.
type RBDSpec struct {
	// Namespace is the RADOS namespace, which is created if it is missing; empty means none.
	Namespace string
	// Size is in bytes.
	Size int64
	// Content is the beginning of the image; the rest is zeros.
	Content []byte
}

// RBDImage is a disk in the pool.
type RBDImage struct {
	Pool, Namespace, Image string
	// Size is in bytes.
	Size int64
}

// Path is the image's name with its pool and namespace, as Ceph's and QEMU's tools have it. libvirt 9 accepts it as well, but does not
// support namespaces: the second part belongs to the image's name there.
func (i RBDImage) Path() string { return path.Join(i.Pool, i.Namespace, i.Image) }

// RBD returns the lab's Ceph cluster, which the first call starts.
func (l *Lab) RBD(ctx context.Context) (*RBD, error) {
	return l.rbd.get(ctx, func(ctx context.Context) (*RBD, error) {
		dir, err := l.serverFolder("rbd")
		if err != nil {
			return nil, err
		}
		monitor, err := freePort(ctx)
		if err != nil {
			return nil, err
		}
		r := &RBD{
			Monitors: []string{monitor}, Pool: "disks", User: "lab", Key: cephKey(),
			dir: dir, namespaces: map[string]bool{"": true},
		}
		if r.sandbox, err = startSandbox(ctx, l.Dir, "rbd", dir); err != nil {
			return nil, err
		}
		return r, r.startCeph(ctx)
	})
}

// URL is the URL of an image, with the credentials, for QEMU's tools.
func (r *RBD) URL(image RBDImage) string {
	return fmt.Sprintf("rbd:%s:id=%s:key=%s:mon_host=%s", image.Path(), r.User, r.Key, strings.ReplaceAll(r.Monitors[0], ":", `\:`))
}

// AddImage creates an image.
func (r *RBD) AddImage(ctx context.Context, spec RBDSpec) (RBDImage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	image := RBDImage{Pool: r.Pool, Namespace: spec.Namespace, Image: "image-" + strconv.Itoa(r.last), Size: spec.Size}
	if !r.namespaces[spec.Namespace] {
		if err := r.run(ctx, "rbd namespace create "+quote(path.Join(r.Pool, spec.Namespace))); err != nil {
			return RBDImage{}, err
		}
		r.namespaces[spec.Namespace] = true
	}
	content := filepath.Join(r.dir, image.Image)
	if err := makeImage(content, spec.Size, spec.Content); err != nil {
		return RBDImage{}, err
	}
	defer func() { _ = os.Remove(content) }()
	return image, r.run(ctx, "rbd import --no-progress "+quote(content)+" "+quote(image.Path()))
}

// Read returns n bytes of an image.
func (r *RBD) Read(ctx context.Context, image RBDImage, offset int64, n int) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	content := filepath.Join(r.dir, image.Image)
	defer func() { _ = os.Remove(content) }()
	if err := r.run(ctx, "rbd export --no-progress "+quote(image.Path())+" "+quote(content)); err != nil {
		return nil, err
	}
	file, err := os.Open(content)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	read := make([]byte, n)
	if _, err := file.ReadAt(read, offset); err != nil {
		return nil, fmt.Errorf("read %s: %w", image.Path(), err)
	}
	return read, nil
}

// GrowImage enlarges an image to a size in bytes.
func (r *RBD) GrowImage(ctx context.Context, image RBDImage, size int64) error {
	return r.run(ctx, fmt.Sprintf("rbd resize --no-progress --size %dB %s", size, quote(image.Path())))
}

// RemoveImage removes an image. It fails as long as a client has the image open.
func (r *RBD) RemoveImage(ctx context.Context, image RBDImage) error {
	return r.run(ctx, "rbd rm --no-progress "+quote(image.Path()))
}

func (r *RBD) close(ctx context.Context) error {
	if r == nil {
		return nil
	}
	return r.sandbox.close(ctx)
}
