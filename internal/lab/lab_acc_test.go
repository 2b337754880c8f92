//go:build acc

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// shared is the lab of the tests that do not start their own. It is started by the first of them.
var shared *Lab

func TestMain(m *testing.M) {
	if os.Getenv(killMe) != "" {
		startToBeKilled()
	}
	code := m.Run()
	if shared != nil {
		if err := shared.Stop(context.Background()); err != nil {
			fmt.Println(err)
			code = 1
		}
	}
	os.Exit(code)
}

// sharedLab returns the shared lab, and fails the test if it leaves something there.
func sharedLab(t *testing.T) *Lab {
	t.Helper()
	if shared == nil {
		l, err := Start(t.Context(), Options{Log: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		shared = l
	}
	before := snapshot(t, shared)
	t.Cleanup(func() {
		after, err := shared.Snapshot(context.Background())
		if left := before.Diff(after); err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
	})
	return shared
}

func snapshot(t *testing.T, l *Lab) Snapshot {
	t.Helper()
	s, err := l.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAccLab_TwoAtOnceLeaveNothing(t *testing.T) {
	points := mountPoints()
	var labs [2]*Lab
	var group errgroup.Group
	for i := range labs {
		group.Go(func() (err error) {
			if labs[i], err = Start(t.Context(), Options{}); err != nil {
				return err
			}
			return startServers(t.Context(), labs[i])
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, l := range labs {
		if loopDevices(t, l.Dir) == "" {
			t.Error("the test does not see the lab's block device, so it proves nothing")
		}
		if len(nodeLeft(t, l.Dir)) < 2 {
			t.Error("the test does not see the node's control groups and its link, so it proves nothing")
		}
		if len(processes(t, l.Dir)) < 5 {
			t.Errorf("the test sees only %v of a lab that runs, so it proves nothing", processes(t, l.Dir))
		}
		if other := labs[1-i]; l.Target.Portal == other.Target.Portal || l.Cluster.port == other.Cluster.port {
			t.Error("both labs have the same port")
		}
	}
	for _, l := range labs {
		if err := l.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, l := range labs {
		nothingLeft(t, l.Dir)
	}
	left := slices.DeleteFunc(mountPoints(), func(path string) bool { return slices.Contains(points, path) || isOfOthers(path) })
	if len(left) > 0 {
		t.Errorf("folders for mounts are left: %v", left)
	}
}

// isOfOthers reports whether a folder for mounts exists because the labs of other packages run, the last of which removes it.
func isOfOthers(path string) bool {
	made, err := os.ReadFile("/run/virtclaim-lab.made")
	if err != nil || !slices.Contains(strings.Fields(string(made)), path) {
		return false
	}
	run, err := os.Open("/run")
	if err != nil {
		return false
	}
	defer func() { _ = run.Close() }()
	return errors.Is(unix.Flock(int(run.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// startServers starts the servers that a lab has on demand.
func startServers(ctx context.Context, l *Lab) error {
	_, nbd := l.NBD(ctx)
	_, rbd := l.RBD(ctx)
	_, web := l.Web(ctx)
	_, registry := l.Registry(ctx)
	_, nfs := l.NFS(ctx)
	_, gluster := l.Gluster(ctx)
	_, defaultConfig := l.DefaultConfigHost(ctx)
	_, remote := l.Remote(ctx)
	_, block := l.AddBlockDevice(ctx, lunSize, nil)
	return errors.Join(nbd, rbd, web, registry, nfs, gluster, defaultConfig, remote, block, startNode(ctx, l))
}

// nothingLeft checks that a lab has left no process, no mount, no block device, no control group, no network link and no file.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	await(t, "the node's control groups and its link have gone", func() bool { return len(nodeLeft(t, dir)) == 0 })
	if left := loopDevices(t, dir); left != "" {
		t.Errorf("block devices are left: %s", left)
	}
	if left := processes(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), filepath.Base(dir)) {
		t.Errorf("mounts are left:\n%s", mounts)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder %s is left (%v)", dir, err)
	}
}

// processes lists the processes that name a lab's folder or run in one of its sandboxes, where it is mounted.
func processes(t *testing.T, dir string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		line, _ := os.ReadFile(filepath.Join(p, "cmdline")) // it may have ended since
		mounts, _ := os.ReadFile(filepath.Join(p, "mountinfo"))
		if strings.Contains(string(line)+string(mounts), filepath.Base(dir)) {
			name, _ := os.ReadFile(filepath.Join(p, "comm"))
			found = append(found, strings.TrimSpace(string(name)))
		}
	}
	return found
}

// mountPoints lists the existing paths among those that sandboxes mount over, or that servers create where nothing is mounted over.
func mountPoints() (there []string) {
	for _, path := range []string{
		"/run/libvirt", "/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt", "/run/tgtd",
		"/etc/ceph", "/var/lib/nfs", "/var/lib/glusterd", "/var/log/glusterfs",
		"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log/pods", "/var/log/containers", "/usr/libexec/kubernetes",
		"/run/glusterd.socket", "/run/rpcbind.sock", "/run/ganesha", "/var/log/ceph/ceph.log", "/run/sshd",
	} {
		if _, err := os.Stat(path); err == nil {
			there = append(there, path)
		}
	}
	return there
}

func TestAccLab_KilledIsCleanedUp(t *testing.T) {
	dir := startAndKill(t)
	await(t, "nothing uses the killed lab's folder", func() bool { return !inUse(t, dir) })
	if left := processes(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	await(t, "the killed lab's block device has gone", func() bool { return loopDevices(t, dir) == "" })
	l, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, dir)
	if err := l.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAccLab_CanceledStartLeavesNothing(t *testing.T) {
	state := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	var dirs []string
	log := func(format string, _ ...any) {
		if strings.HasPrefix(format, "starting") {
			dirs, _ = filepath.Glob(filepath.Join(state, "run-*"))
			cancel()
		}
	}
	if l, err := Start(ctx, Options{State: state, Log: log}); err == nil {
		t.Error("it started", l.Stop(t.Context()))
	}
	if len(dirs) != 1 {
		t.Fatalf("it had the folders %v", dirs)
	}
	nothingLeft(t, dirs[0])
}
