package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

// Node is a Kubernetes node: kubelet and a container runtime, which run pods as processes of this machine. It is host-a's: it has the same
// name, and pods see the files and the block devices that guests of host-a see; host-a sees what kubelet mounts. As no scheduler runs, pods
// name it.
type Node struct {
	// Name is the node's name.
	Name string
	// Address is the node's address. This machine reaches it and those of pods.
	Address string
	// Machine is the address of this machine for the node and its pods. They reach the API server and the registry there, at the ports that
	// these have on loopback. Images keep the names that they have on loopback.
	Machine string
	// BusyBox is an image with /bin/sh, whose commands are those of BusyBox.
	BusyBox string

	lab       *Lab
	dir       string
	sandbox   *sandbox
	network   uint16
	apiServer string
	// registries are the addresses for the node by those on loopback.
	registries map[string]string
	forwards   []*forward
	// mounts is the process that keeps the node's mounts.
	mounts, kubelet *daemon
	csi             onDemand[csiDriver]
	// path is the PATH of programs, program is the path of kubelet's.
	path, program string
}

// nodeName is host-a's.
const nodeName = "host-a"

// A node's network has 256 addresses, which pods get in turn: one that gets that of an earlier pod is not reached for ten seconds.
const (
	nodePrefix                                     = 24
	machineAddress, nodeAddress, firstPod, lastPod = 1, 2, 3, 254
)

var (
	//go:embed node.sh
	nodeScript string
	//go:embed nodeend.sh
	nodeEndScript string
	//go:embed kubelet.sh
	kubeletScript string
)

// Node returns the lab's node, which the first call starts, in some seconds.
func (l *Lab) Node(ctx context.Context) (*Node, error) {
	return l.node.get(ctx, func(ctx context.Context) (*Node, error) {
		system, err := artefact.Node(ctx, l.cache, l.log)
		if err != nil {
			return nil, err
		}
		kubelet, err := artefact.Kubelet(ctx, l.cache, l.log)
		if err != nil {
			return nil, err
		}
		dir, err := l.serverFolder("node")
		if err != nil {
			return nil, err
		}
		n := &Node{Name: nodeName, lab: l, dir: dir, path: system.Programs, program: kubelet, registries: map[string]string{}}
		if err := n.start(ctx, system); err != nil {
			return n, fmt.Errorf("start a node: %w", err)
		}
		return n, nil
	})
}

func (n *Node) start(ctx context.Context, system artefact.NodeSystem) error {
	if err := n.startSandbox(ctx); err != nil {
		return err
	}
	if err := n.connect(ctx); err != nil {
		return err
	}
	if err := n.setUp(ctx); err != nil {
		return err
	}
	if err := n.writeConfiguration(ctx, system); err != nil {
		return err
	}
	if err := n.startContainerd(ctx); err != nil {
		return err
	}
	if err := n.StartKubelet(ctx); err != nil {
		return err
	}
	if err := n.awaitReady(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, lastWords(n.kubelet.log))
	}
	return nil
}

// startSandbox creates the sandbox, which has kubelet's mounts in common with host-a (see kubelet.sh), and in it the node's network.
func (n *Node) startSandbox(ctx context.Context) (err error) {
	if err := os.WriteFile(filepath.Join(n.dir, "end.sh"), []byte(nodeEndScript), 0o600); err != nil {
		return err
	}
	var binds []bind
	for folder, over := range map[string]string{
		"containerd": "/var/lib/containerd", "cni": "/var/lib/cni", "logs": "/var/log/pods", "container-logs": "/var/log/containers",
	} {
		binds = append(binds, bind{filepath.Join(n.dir, folder), over})
	}
	keeper, err := os.ReadFile(filepath.Join(n.lab.Dir, "kubelet.pid"))
	if err != nil {
		return err
	}
	mounts := []string{"nsenter", "--target", strings.TrimSpace(string(keeper)), "--mount"}
	mounts = append(mounts, "unshare", "--mount", "--propagation", "unchanged")
	if n.sandbox, err = startSandboxWith(ctx, mounts, n.lab.Dir, n.Name, n.dir, binds...); err != nil {
		return err
	}
	return n.sandbox.run(ctx, fmt.Sprintf("touch %[1]s && unshare --net=%[1]s true", quote(n.file("network"))))
}

// connect connects the node with the machine and its servers.
func (n *Node) connect(ctx context.Context) (err error) {
	var link string
	if link, n.network, err = addLink(ctx, n.sandbox, n.file("network"), "vcnode", 16-(32-nodePrefix)); err != nil {
		return err
	}
	n.Machine, n.Address = n.addressOf(machineAddress).String(), n.addressOf(nodeAddress).String()
	for _, command := range []string{
		fmt.Sprintf("ip address add %s/%d dev %s", n.Machine, nodePrefix, link),
		// The alias says whose it is.
		fmt.Sprintf("ip link set %s alias %s up", link, n.controlGroup()),
	} {
		if err := n.sandbox.run(ctx, command); err != nil {
			return err
		}
	}
	registry, err := n.lab.Registry(ctx)
	if err != nil {
		return err
	}
	if n.apiServer, err = n.forward(ctx, "127.0.0.1:"+n.lab.Cluster.port); err != nil {
		return err
	}
	for _, address := range []string{registry.Address, registry.Private} {
		if n.registries[address], err = n.forward(ctx, address); err != nil {
			return err
		}
	}
	return nil
}

// setUp creates the node's own mounts, which are shared with containers, and the rest of node.sh. Mounts are kept by a process: some
// kernels refuse at random to keep them by a file, as networks are.
func (n *Node) setUp(ctx context.Context) error {
	script := fmt.Sprintf("bash -c %s node.sh %s %s/%d %s", quote(nodeScript), quote(n.dir), n.Address, nodePrefix, n.controlGroup())
	n.mounts = startDaemon(n.sandbox, n.dir, "mounts", "nsenter --net="+quote(n.file("network"))+" unshare --mount --propagation=shared "+
		script)
	return n.mounts.await(ctx, func(context.Context) error {
		_, err := os.Stat(n.file("ready"))
		return err
	})
}

// forward has the node reach a server on loopback, and returns its address for the node.
func (n *Node) forward(ctx context.Context, to string) (string, error) {
	f, err := newForward(ctx, n.addressOf(machineAddress), to)
	if err != nil {
		return "", err
	}
	n.forwards = append(n.forwards, f)
	return f.Addr().String(), nil
}

// addressOf is an address of the node's network.
func (n *Node) addressOf(number uint32) netip.Addr {
	return address(nodeNetworks, uint32(n.network)<<(32-nodePrefix)+number)
}

func (n *Node) subnet() string { return netip.PrefixFrom(n.addressOf(0), nodePrefix).String() }

// controlGroup is the name of the control group of all pods, which no other lab has.
func (n *Node) controlGroup() string { return "virtclaim-" + filepath.Base(n.lab.Dir) }

func (n *Node) file(name string) string { return filepath.Join(n.dir, name) }

// in is a shell command that runs with the node's mounts and network.
func (n *Node) in(command string) string {
	return fmt.Sprintf("nsenter --target $(cat %s) --mount --net %s", quote(n.mounts.pid), command)
}

// run starts a program of the node.
func (n *Node) run(name, program string) *daemon {
	return startDaemon(n.sandbox, n.dir, name, n.in(fmt.Sprintf(`env PATH=%s"$PATH:%s" %s`, quote(n.path), systemFolders, program)))
}

// startContainerd waits for its socket: kubelet ends if there is none, and waits for the answer itself.
func (n *Node) startContainerd(ctx context.Context) error {
	containerd := n.run("containerd", "containerd --config "+quote(n.file("containerd.toml")))
	err := containerd.await(ctx, func(ctx context.Context) error {
		return n.sandbox.run(ctx, n.in("test -S /run/containerd/containerd.sock"))
	})
	if err != nil {
		return fmt.Errorf("start containerd: %w", err)
	}
	return nil
}

// StartKubelet starts kubelet, the first time or after KillKubelet, and waits until it answers.
func (n *Node) StartKubelet(ctx context.Context) error {
	n.kubelet = n.run("kubelet", fmt.Sprintf("%s --config %s --kubeconfig %s --hostname-override %s --node-ip %s",
		quote(n.program), quote(n.file("kubelet.yaml")), quote(n.file("kubeconfig")), n.Name, n.Address))
	err := n.kubelet.await(ctx, func(ctx context.Context) error {
		return n.lab.Cluster.Client.CoreV1().RESTClient().Get().Resource("nodes").Name(n.Name).SubResource("proxy", "healthz").Do(ctx).
			Error()
	})
	if err != nil {
		return fmt.Errorf("start kubelet: %w", err)
	}
	return nil
}

// KillKubelet ends kubelet as a crash would. Pods keep running.
func (n *Node) KillKubelet(ctx context.Context) error {
	if err := n.kubelet.end(ctx, "KILL"); err != nil {
		return fmt.Errorf("kill kubelet: %w", err)
	}
	return nil
}

// awaitReady waits until kubelet reports that pods can run.
func (n *Node) awaitReady(ctx context.Context) error {
	var last []corev1.NodeCondition
	err := n.lab.await(ctx, object{resource: "nodes", name: n.Name}, nil, func(e watch.Event) bool {
		node, ok := e.Object.(*corev1.Node)
		if !ok {
			return false
		}
		last = node.Status.Conditions
		for _, condition := range last {
			if condition.Type == corev1.NodeReady {
				return condition.Status == corev1.ConditionTrue
			}
		}
		return false
	})
	if err != nil {
		return fmt.Errorf("it is not ready (last seen: %v): %w", last, err)
	}
	return nil
}

func (n *Node) close(ctx context.Context) error {
	if n == nil {
		return nil
	}
	var all []error
	for _, f := range n.forwards {
		all = append(all, f.Close())
	}
	return errors.Join(append(all, n.sandbox.close(ctx))...)
}
