package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// Gluster is a GlusterFS server with a volume of one brick. Its clients need ten seconds to close an image.
type Gluster struct {
	// Server is host:port.
	Server string
	Volume string

	dir     string
	sandbox *sandbox
	network *network

	mu   sync.Mutex
	last int
}

// GlusterImage is a disk in the volume.
type GlusterImage struct {
	// Volume and Image are the names; libvirt and QEMU expect both with a slash between them.
	Volume, Image string
	// Path is the file in the brick.
	Path string
	// Size is in bytes.
	Size int64
}

// Gluster returns the lab's GlusterFS server, which the first call starts.
func (l *Lab) Gluster(ctx context.Context) (*Gluster, error) {
	return l.gluster.get(ctx, func(ctx context.Context) (*Gluster, error) {
		dir, err := l.serverFolder("gluster")
		if err != nil {
			return nil, err
		}
		g := &Gluster{dir: dir, Volume: "disks"}
		g.sandbox, err = startSandbox(ctx, l.Dir, "gluster", dir,
			bind{filepath.Join(dir, "lib"), "/var/lib/glusterd"},
			bind{filepath.Join(dir, "log"), "/var/log/glusterfs"})
		if err != nil {
			return nil, err
		}
		if g.network, err = newNetwork(ctx, g.sandbox, dir); err != nil {
			return g, err
		}
		g.Server = g.network.Address + ":24007"
		return g, g.start(ctx)
	})
}

func (g *Gluster) start(ctx context.Context) error {
	for _, folder := range []string{g.brick(), filepath.Join(g.network.run, "gluster")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
	}
	glusterd := startDaemon(g.sandbox, g.dir, "glusterd", g.network.in("glusterd --no-daemon --log-file /dev/stderr"))
	if err := glusterd.await(ctx, func(ctx context.Context) error { return g.command(ctx, "volume list") }); err != nil {
		return fmt.Errorf("start the GlusterFS server: %w", err)
	}
	for _, args := range []string{
		// A brick on the file system of the machine must be forced.
		fmt.Sprintf("volume create %s %s force", g.Volume, quote(g.network.Address+":"+g.brick())),
		"volume start " + g.Volume,
	} {
		if err := g.command(ctx, args); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gluster) command(ctx context.Context, args string) error {
	if err := g.sandbox.run(ctx, g.network.in("gluster --mode=script "+args)); err != nil {
		return fmt.Errorf("gluster %s: %w", args, err)
	}
	return nil
}

func (g *Gluster) brick() string { return filepath.Join(g.dir, "brick") }

// AddImage creates an image. It writes the file into the brick, where the server finds it, which is faster than a client.
func (g *Gluster) AddImage(size int64, content []byte) (GlusterImage, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last++
	image := GlusterImage{Volume: g.Volume, Image: "image-" + strconv.Itoa(g.last) + ".img", Size: size}
	image.Path = filepath.Join(g.brick(), image.Image)
	if err := makeImage(image.Path, size, content); err != nil {
		return GlusterImage{}, fmt.Errorf("make an image in GlusterFS: %w", err)
	}
	return image, nil
}

// RemoveImage removes an image. Its name is not used again.
func (g *Gluster) RemoveImage(image GlusterImage) error { return os.Remove(image.Path) }

func (g *Gluster) close(ctx context.Context) error {
	if g == nil {
		return nil
	}
	return g.sandbox.close(ctx)
}
