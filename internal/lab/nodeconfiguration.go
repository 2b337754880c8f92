package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

// kubeletConfiguration has the file of the clients' authority, the control groups, and an empty file for the names of pods. The
// machine's disk may be almost full, and pods may use what is left.
const kubeletConfiguration = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: %q}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: %q
failCgroupV1: false
failSwapOn: false
resolvConf: %q
volumePluginDir: /var/lib/kubelet/volume-plugins
enableControllerAttachDetach: false
evictionHard: {memory.available: 50Mi, nodefs.available: 1%%, nodefs.inodesFree: 1%%, imagefs.available: 1%%, imagefs.inodesFree: 1%%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
makeIPTablesUtilChains: false
serializeImagePulls: false
eventRecordQPS: 0
maxPods: 50
nodeStatusUpdateFrequency: 2s
syncFrequency: 5s
healthzPort: 0
`

// containerdConfiguration has the image of empty containers, the folders of the plugins for networks and of their configuration, the folder
// of registries, and runc. Root in a container, as which tests may run, must not lower the priority for the end of processes.
const containerdConfiguration = `version = 2
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.tracing.processor.v1.otlp"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  disable_apparmor = true
  cni = { bin_dir = %q, conf_dir = %q }
  registry = { config_path = %q }
`

// podNetworkConfiguration connects pods with the node's bridge. It has their first and last address, the network and the node's address.
const podNetworkConfiguration = `{"cniVersion": "1.0.0", "name": "lab", "plugins": [{
  "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "routes": [{"dst": "0.0.0.0/0"}],
    "ranges": [[{"rangeStart": %q, "rangeEnd": %q, "subnet": %q, "gateway": %q}]]}
}]}
`

// nodeRegistryConfiguration has containerd reach a registry of the machine's loopback.
const nodeRegistryConfiguration = `server = "http://%[1]s"
[host."http://%[1]s"]
`

// writeConfiguration writes the files of kubelet and containerd.
func (n *Node) writeConfiguration(ctx context.Context, system artefact.NodeSystem) error {
	pause, err := n.pushBusyBox(ctx, system.BusyBox)
	if err != nil {
		return err
	}
	files := map[string]string{
		"resolv.conf": "",
		"kubelet.yaml": fmt.Sprintf(kubeletConfiguration,
			filepath.Join(n.lab.Cluster.dir, "ca.crt"), "/"+n.controlGroup(), filepath.Join(n.dir, "resolv.conf")),
		"containerd.toml": fmt.Sprintf(containerdConfiguration,
			pause, system.Networks, filepath.Join(n.dir, "networks"), filepath.Join(n.dir, "registries")),
		"networks/lab.conflist": fmt.Sprintf(podNetworkConfiguration, n.addressOf(firstPod), n.addressOf(lastPod), n.subnet(), n.Address),
	}
	for from, to := range n.registries {
		files["registries/"+from+"/hosts.toml"] = fmt.Sprintf(nodeRegistryConfiguration, to)
	}
	for name, text := range files {
		path := filepath.Join(n.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return err
		}
	}
	return n.writeKubeconfig()
}

// pushBusyBox pushes the node's image, and that of the container that holds the namespaces of a pod.
func (n *Node) pushBusyBox(ctx context.Context, busybox string) (pause string, err error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return "", err
	}
	registry, err := n.lab.Registry(ctx)
	if err != nil {
		return "", err
	}
	spec := ImageSpec{
		Repository: "lab/busybox", Tag: "1", Layers: []ImageLayer{{Programs: map[string][]byte{"bin/busybox": program, "bin/sh": program}}},
	}
	image, err := registry.AddImage(ctx, spec)
	if err != nil {
		return "", err
	}
	n.BusyBox = image.Reference
	spec.Repository, spec.Entrypoint = "lab/pause", []string{"/bin/busybox", "sleep", "infinity"}
	image, err = registry.AddImage(ctx, spec)
	return image.Reference, err
}

// writeKubeconfig has kubelet reach the API server, whose certificate is for loopback.
func (n *Node) writeKubeconfig() error {
	config, err := clientcmd.LoadFromFile(n.lab.Cluster.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the lab's kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.TLSServerName = "https://"+n.apiServer, "localhost"
	}
	return clientcmd.WriteToFile(*config, filepath.Join(n.dir, "kubeconfig"))
}
