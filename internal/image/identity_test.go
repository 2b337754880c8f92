package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	anID    = "0b5a4c52-6a0c-4b3f-9d0c-6f8f0a1b2c3d"
	otherID = "1d5b4b3e-52c6-4d0e-9f43-0e4a3a0a8a11"
)

// An identity can be stored in images of QEMU, with and without a backing file, and QEMU finds no errors in them.
func TestIdentity_OfImagesThatQEMUMakes(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "base")
	qemuImg(t, "create", "-q", "-f", "raw", base, "1M")
	for name, args := range map[string][]string{
		"plain":         {"-f", "qcow2"},
		"version 2":     {"-f", "qcow2", "-o", "compat=0.10"},
		"large cluster": {"-f", "qcow2", "-o", "cluster_size=2M"},
		"overlay":       {"-f", "qcow2", "-F", "raw", "-b", base},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			qemuImg(t, append(append([]string{"create", "-q"}, args...), path, "1M")...)
			before := qemuImg(t, "info", path)
			giveIdentity(t, path, anID)
			if after := qemuImg(t, "info", path); after != before {
				t.Errorf("qemu-img sees another image:\n%s\n%s", before, after)
			}
			qemuImg(t, "resize", "-q", path, "2M")
			qemuImg(t, "check", "-q", path)
			if got := Identity(headOf(t, path)); got != anID {
				t.Errorf("the identity is %q", got)
			}
			giveIdentity(t, path, otherID)
			if got := Identity(headOf(t, path)); got != otherID {
				t.Errorf("the second identity is %q", got)
			}
		})
	}
}

// An overlay that was copied to another host gets the name of the backing file there, and keeps all else.
func TestWithBacking(t *testing.T) {
	dir := t.TempDir()
	here, copied := filepath.Join(dir, "base"), filepath.Join(dir, "copied")
	qemuImg(t, "create", "-q", "-f", "raw", here, "1M")
	for _, name := range []string{"base", "a-base-with-a-longer-name", "b"} {
		there := filepath.Join(dir, name)
		qemuImg(t, "create", "-q", "-f", "raw", there, "1M")
		qemuImg(t, "create", "-q", "-f", "qcow2", "-F", "raw", "-b", here, copied, "2M")
		giveIdentity(t, copied, anID)
		head, err := WithBacking(headOf(t, copied), there)
		if err != nil {
			t.Fatal(err)
		}
		writeHead(t, copied, head)
		if info := qemuImg(t, "info", copied); !strings.Contains(info, "backing file: "+there+"\n") {
			t.Errorf("%s: %s", name, info)
		}
		qemuImg(t, "check", "-q", copied)
		if got := Identity(headOf(t, copied)); got != anID {
			t.Errorf("%s: the identity is %q", name, got)
		}
	}
	plain := filepath.Join(dir, "plain")
	qemuImg(t, "create", "-q", "-f", "qcow2", plain, "2M")
	if _, err := WithBacking(headOf(t, plain), here); !errors.Is(err, ErrNoRoom) {
		t.Errorf("an image without a backing file: %v", err)
	}
}

// A file that is no qcow2 image has no identity and can't get one, and neither can an image whose first cluster is full.
func TestIdentity_NoRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "full")
	qemuImg(t, "create", "-q", "-f", "qcow2", path, "1M")
	full := headOf(t, path)
	_, end, err := qcow2(full).extensions()
	if err != nil {
		t.Fatal(err)
	}
	wrapped := bytes.Clone(full)
	binary.BigEndian.PutUint64(wrapped[qcow2Backing:], ^uint64(7))
	binary.BigEndian.PutUint32(wrapped[qcow2BackingSize:], 8)
	full[end+16] = 1 // the byte is in use
	endless := withoutEnd(t)
	for name, head := range map[string][]byte{
		"raw": make([]byte, 4096), "empty": nil, "name that wraps around": wrapped, "cut off": []byte("QFI\xfb\x00\x00\x00\x03"), "full": full,
		"extensions that end with the first cluster": endless,
	} {
		if _, err := WithIdentity(head, anID); !errors.Is(err, ErrNoRoom) {
			t.Errorf("%s: %v", name, err)
		}
		if Identity(head) != "" {
			t.Errorf("%s has an identity", name)
		}
	}
}

// withoutEnd is an image whose extensions fill its first cluster. Guest data in the next cluster looks like an identity.
func withoutEnd(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "endless")
	qemuImg(t, "create", "-q", "-f", "qcow2", "-o", "cluster_size=512", path, "1M")
	head := headOf(t, path)
	const cluster, unknown = 512, 0x41414141
	at := qcow2(head).length()
	binary.BigEndian.PutUint32(head[at:], unknown)
	binary.BigEndian.PutUint32(head[at+4:], cluster-at-8)
	clear(head[at+8 : cluster])
	guests := binary.BigEndian.AppendUint32(nil, identityExtension)
	guests = binary.BigEndian.AppendUint32(guests, uint32(len(otherID)))
	copy(head[cluster:], append(guests, otherID...))
	clear(head[cluster+len(guests)+len(otherID) : 2*cluster])
	return head
}

// An image without an end mark is refused before an upload, although QEMU would accept it.
func TestProbe_ExtensionsWithoutEnd(t *testing.T) {
	if _, err := Probe(withoutEnd(t)); !errors.Is(err, ErrUntrusted) {
		t.Errorf("it is %v", err)
	}
}

func FuzzIdentity(f *testing.F) {
	f.Add([]byte("QFI\xfb\x00\x00\x00\x03"))
	f.Add(bytes.Repeat([]byte{0xff}, 200))
	valid := make([]byte, 4096)
	copy(valid, "QFI\xfb\x00\x00\x00\x03")
	valid[qcow2ClusterBits+3], valid[qcow2Length+3] = 16, qcow2Length+4
	f.Add(valid)
	for bits := range 32 {
		for version := range byte(4) {
			head := bytes.Clone(valid)
			head[qcow2Version+3], head[qcow2ClusterBits+3] = version, byte(bits)
			f.Add(head)
		}
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		Identity(head)
		given, err := WithIdentity(head, anID)
		if err != nil {
			return
		}
		if len(given) > len(head) || Identity(given) != anID {
			t.Error("the identity is not there, or the header is longer than the head")
		}
	})
}

func giveIdentity(t *testing.T, path, id string) {
	t.Helper()
	head, err := WithIdentity(headOf(t, path), id)
	if err != nil {
		t.Fatal(err)
	}
	writeHead(t, path, head)
}

func writeHead(t *testing.T, path string, head []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt(head, 0); err != nil {
		t.Fatal(err)
	}
}

func headOf(t *testing.T, path string) []byte {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return all[:min(len(all), HeadSize)]
}

func qemuImg(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "qemu-img", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("qemu-img %v: %s: %s", args, err, out)
	}
	return string(out)
}
