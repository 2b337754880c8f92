// Command csi is a CSI driver for the lab's kubelet. Its volumes are folders of
// the machine, which their attributes name; a volume's mount is a bind mount of
// its folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driver is kubelet's view of the program.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer

	name, node, socket string
}

func main() {
	var d driver
	flag.StringVar(&d.name, "name", "", "the driver's `name`")
	flag.StringVar(&d.node, "node", "", "the node's `name`")
	flag.Parse()
	const kubelet = "/var/lib/kubelet"
	d.socket = filepath.Join(kubelet, "plugins", d.name, "csi.sock")
	if err := d.serve(filepath.Join(kubelet, "plugins_registry", d.name+"-reg.sock")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve serves until an error. kubelet sees the registration's socket and asks
// it for the other one.
func (d *driver) serve(registry string) error {
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, d)
	csi.RegisterNodeServer(server, d)
	registration.RegisterRegistrationServer(server, d)
	failed := make(chan error)
	for _, socket := range []string{d.socket, registry} {
		if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
			return err
		}
		if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		listener, err := net.Listen("unix", socket)
		if err != nil {
			return err
		}
		go func() { failed <- server.Serve(listener) }()
	}
	return <-failed
}

// GetInfo is the registration's.
func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: d.name, Endpoint: d.socket, SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus tells what kubelet has made of the registration.
func (d *driver) NotifyRegistrationStatus(
	_ context.Context, s *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	fmt.Fprintf(os.Stderr, "registered: %t %s\n", s.PluginRegistered, s.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "1"}, nil
}

func (d *driver) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

func (d *driver) NodeGetCapabilities(
	context.Context, *csi.NodeGetCapabilitiesRequest,
) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// NodePublishVolume mounts a volume, unless an earlier call has.
func (d *driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	folder := r.VolumeContext["folder"]
	if !filepath.IsAbs(folder) || r.VolumeCapability.GetMount() == nil {
		return nil, status.Errorf(codes.InvalidArgument, "volume %q is no file system in an absolute folder: %q", r.VolumeId, folder)
	}
	if err := publish(folder, r.TargetPath, r.Readonly); err != nil {
		return nil, status.Errorf(codes.Internal, "mount the folder %q at %q: %v", folder, r.TargetPath, err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func publish(folder, target string, readonly bool) error {
	if mounted, err := sameFile(folder, target); mounted || err != nil {
		return err
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	if err := unix.Mount(folder, target, "", unix.MS_BIND, ""); err != nil || !readonly {
		return err
	}
	return unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
}

// sameFile reports whether two paths are of one file. The second may be missing.
func sameFile(path, other string) (bool, error) {
	first, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	second, err := os.Stat(other)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(first, second), err
}

// NodeUnpublishVolume unmounts a volume, unless an earlier call has.
func (d *driver) NodeUnpublishVolume(
	_ context.Context, r *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	// A path that is no mount point is invalid.
	if err := unix.Unmount(r.TargetPath, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return nil, status.Errorf(codes.Internal, "unmount %q: %v", r.TargetPath, err)
	}
	if err := os.Remove(r.TargetPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.Internal, "remove %q: %v", r.TargetPath, err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
