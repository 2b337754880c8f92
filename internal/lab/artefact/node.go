package artefact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// nodePackages are what a Kubernetes node has beside kubelet.
var nodePackages = []string{"containerd", "runc", "containernetworking-plugins", "busybox-static"}

// NodeSystem is what a Kubernetes node has beside kubelet.
type NodeSystem struct {
	// Programs are the folders of containerd and runc, to be put on the PATH; Networks is the folder of the plugins for networks.
	Programs, Networks string
	// BusyBox is a program without libraries, for images.
	BusyBox string
}

// Node returns the distribution's container runtime, which is downloaded but not installed. Its path does not contain the version: it is
// kept until its folder is removed.
func Node(ctx context.Context, cache string, log func(format string, args ...any)) (NodeSystem, error) {
	hash := shortHash(fmt.Appendf(nil, "%q", nodePackages))
	dir, err := folder(ctx, cache, "node-"+hash, log, func(ctx context.Context, dir string) error {
		return unpackNode(ctx, dir, log)
	})
	if err != nil {
		return NodeSystem{}, fmt.Errorf("unpack a container runtime: %w", err)
	}
	return findNode(filepath.Join(dir, "root"))
}

// unpackNode leaves only the folder that findNode looks into.
func unpackNode(ctx context.Context, dir string, log func(string, ...any)) error {
	work := filepath.Join(dir, "packages")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	root, err := unpack(ctx, work, "a container runtime", log, func(context.Context) ([]string, error) { return nodePackages, nil })
	if err != nil {
		return err
	}
	if _, err := findNode(root); err != nil {
		return err
	}
	return errors.Join(os.Rename(root, filepath.Join(dir, "root")), os.RemoveAll(work))
}

func findNode(root string) (found NodeSystem, err error) {
	for _, program := range []string{"containerd", "containerd-shim-runc-v2", "runc"} {
		path, err := findFile(root, "usr/bin/"+program, "usr/sbin/"+program)
		if err != nil {
			return NodeSystem{}, err
		}
		found.Programs += filepath.Dir(path) + ":"
	}
	bridge, err := findFile(root, "usr/lib/cni/bridge")
	if err != nil {
		return NodeSystem{}, err
	}
	found.Networks = filepath.Dir(bridge)
	found.BusyBox, err = findFile(root, "bin/busybox", "usr/bin/busybox")
	return found, err
}
