//go:build acc

package lab

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// inNode runs a command of a shell with the node's mounts.
func inNode(t *testing.T, n *Node, text string) string {
	t.Helper()
	out, err := n.sandbox.output(t.Context(), n.in("bash -c "+quote(text)))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func onHost(t *testing.T, h *Host, text string) string {
	t.Helper()
	out, err := h.Run(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// otherMounts are where something is mounted on a host, but for kubelet's.
const otherMounts = "grep -v ' /var/lib/kubelet' /proc/self/mountinfo | cut -d ' ' -f 5 | sort"

func TestAccNode_HostSeesItsMounts(t *testing.T) {
	l := sharedLab(t)
	h := l.Hosts[nodeName]
	before := onHost(t, h, otherMounts)
	n := node(t, l)
	folder := filepath.Join(t.TempDir(), "volume")
	const at, copied = "/var/lib/kubelet/by-hand", "/run/libvirt/copied"
	inNode(t, n, "mkdir -p "+at+" "+folder+"; echo hello >"+folder+"/greeting; mount --bind "+folder+" "+at)
	if got := onHost(t, h, "cat "+at+"/greeting"); got != "hello" {
		t.Errorf("%s sees %q", nodeName, got)
	}
	onHost(t, h, "mkdir "+copied+"; mount --bind -o nosymfollow "+at+" "+copied)
	if got := inNode(t, n, "grep -c ' /[a-z]*/libvirt' /proc/self/mountinfo || true"); got != "0" {
		t.Errorf("the node has %s mounts of %s", got, nodeName)
	}
	if got := onHost(t, l.Hosts["host-b"], "grep -c ' /var/lib/kubelet' /proc/self/mountinfo || true"); got != "0" {
		t.Errorf("host-b has %s mounts of the node", got)
	}
	inNode(t, n, "umount "+at+"; rmdir "+at)
	if got := onHost(t, h, "ls "+at+" 2>&1; cat "+copied+"/greeting; umount "+copied+"; rmdir "+copied); !strings.HasSuffix(got, "\nhello") {
		t.Errorf("without the node's mount, %s sees %q", nodeName, got)
	}
	if after := onHost(t, h, otherMounts); after != before {
		t.Errorf("the node has changed the mounts of %s from\n%s\nto\n%s", nodeName, before, after)
	}
}

func TestAccNode_HostUsesTheFileSystemOfAClaim(t *testing.T) {
	l := sharedLab(t)
	h := l.Hosts[nodeName]
	n := node(t, l)
	if err := n.StartCSI(t.Context()); err != nil {
		t.Fatal(err)
	}
	claim := FolderClaim(podNamespace, "files", t.TempDir(), lunSize, corev1.ReadWriteOnce)
	addClaim(t, l, claim)
	pod := addPod(t, n, serving(shellPod("writer", n.BusyBox, "echo hello >/claims/files/greeting; exec httpd -f -p 8080 -h /", claim)))
	at, copied := KubeletMount(pod, claim), "/run/libvirt/copied"
	got := onHost(t, h, "mountpoint -q "+at+" && cat "+at+"/greeting; mkdir "+copied+"; mount --bind -o nosymfollow "+at+" "+copied)
	if got != "hello" {
		t.Errorf("%s sees %q", nodeName, got)
	}
	if err := n.RemovePod(t.Context(), pod.Namespace, pod.Name); err != nil {
		t.Error(err)
	}
	if got := onHost(t, h, "cat "+copied+"/greeting; umount "+copied+"; rmdir "+copied); got != "hello" {
		t.Errorf("without the pod, %s sees %q", nodeName, got)
	}
	for where, mounts := range map[string]string{
		nodeName: onHost(t, h, "cat /proc/self/mountinfo"), "the node": inNode(t, n, "cat /proc/self/mountinfo"),
	} {
		if strings.Contains(mounts, string(pod.UID)) {
			t.Errorf("%s has mounts of the removed pod:\n%s", where, mounts)
		}
	}
}
