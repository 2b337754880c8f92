//go:build acc

package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func addRBD(t *testing.T, l *Lab, spec RBDSpec) (*RBD, RBDImage) {
	t.Helper()
	rbd, err := l.RBD(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	image, err := rbd.AddImage(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return rbd, image
}

// defineKey defines a secret with a key of the Ceph cluster's user on a host, and returns the element that names it.
func defineKey(t *testing.T, h *Host, rbd *RBD, key string) (id, auth string) {
	t.Helper()
	id = setSecret(t, h, "<usage type='ceph'><name>lab</name></usage>", key)
	return id, fmt.Sprintf(`<auth username='%s'><secret type='ceph' uuid='%s'/></auth>`, rbd.User, id)
}

func rbdDisk(t *testing.T, rbd *RBD, image RBDImage, auth string) string {
	t.Helper()
	return networkDisk(t, fmt.Sprintf("protocol='rbd' name='%s'", image.Path()), rbd.Monitors[0], auth)
}

func TestAccRBD_GuestUsesIt(t *testing.T) {
	l := sharedLab(t)
	h := l.Hosts["host-a"]
	rbd, image := addRBD(t, l, RBDSpec{Size: lunSize, Content: []byte("content")})
	secret, auth := defineKey(t, h, rbd, rbd.Key)
	guestUses(t, h, rbdDisk(t, rbd, image, auth), "content", func() {
		if got, err := rbd.Read(t.Context(), image, 4096, len(fromGuest)); err != nil || string(got) != fromGuest {
			t.Errorf("the image has %q, %v", got, err)
		}
	})
	virsh(t, h, "secret-undefine", secret)
	if err := rbd.RemoveImage(t.Context(), image); err != nil {
		t.Error(err)
	}
	if out, err := run(t, "qemu-img", "info", rbd.URL(image)); err == nil {
		t.Errorf("the image is left: %s", out)
	}
}

func TestAccRBD_Namespace(t *testing.T) {
	l := sharedLab(t)
	for range 2 {
		rbd, image := addRBD(t, l, RBDSpec{Namespace: "tenant", Size: lunSize, Content: []byte("content")})
		out, err := run(t, "qemu-io", "-f", "raw", "-c", "read -v 0 512", "-c", "write -P 0x41 4096 512", rbd.URL(image))
		if err != nil || !strings.Contains(out, "content") {
			t.Errorf("%v: %s", err, out)
		}
		if got, err := rbd.Read(t.Context(), image, 4096, 3); err != nil || string(got) != "AAA" {
			t.Errorf("the image has %q, %v", got, err)
		}
		if err := rbd.RemoveImage(t.Context(), image); err != nil {
			t.Error(err)
		}
	}
}

func TestAccRBD_WrongKeyFailsSoon(t *testing.T) {
	l := sharedLab(t)
	h := l.Hosts["host-a"]
	rbd, image := addRBD(t, l, RBDSpec{Size: lunSize})
	secret, auth := defineKey(t, h, rbd, cephKey())
	g := guest{name: "locked-out", disk: rbdDisk(t, rbd, image, auth), log: guestLog(t, h)}
	if err := h.DefineXML(t.Context(), g.xml(h)); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	if out, err := h.Virsh(t.Context(), "start", g.name); err == nil || !strings.Contains(out, "error connecting") {
		t.Errorf("it got the image, or failed at something else: %v", err)
	}
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("the error took %s", took)
	}
	virsh(t, h, "undefine", g.name)
	virsh(t, h, "secret-undefine", secret)
	if err := rbd.RemoveImage(t.Context(), image); err != nil {
		t.Error(err)
	}
}
