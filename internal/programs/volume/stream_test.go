package volume

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// A tag that has another image by now does not change what lies below overlays.
func TestStream_KeepsItsDisks(t *testing.T) {
	reference := strings.TrimPrefix(newRegistry(t).URL, "http://") + "/disks/golden:1"
	s := stream{folder: inMemory(t), log: func(string) {}}
	for n, pushed := range [][]byte{disk(3), disk(4)} {
		push(t, reference, pushed)
		path, err := s.disk(t.Context(), image.Container{Reference: reference, Arch: "amd64"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, disk(3)) {
			t.Errorf("%d: %v, %d bytes", n, err, len(got))
		}
	}
	s.folder = inMemory(t)
	if path, err := s.disk(t.Context(), image.Container{Reference: reference, Path: "disk/other", Arch: "amd64"}); err == nil {
		t.Errorf("%s is a disk that is not in the image", path)
	}
}

func TestLogin(t *testing.T) {
	if c, err := login(""); c != nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
	folder := t.TempDir()
	write := func(key, value string) {
		if err := os.WriteFile(filepath.Join(folder, key), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("node.session.auth.username", "hosts")
	if _, err := login(folder); err == nil {
		t.Error("there is no password")
	}
	write("node.session.auth.password", "")
	if _, err := login(folder); err == nil {
		t.Error("the password is empty")
	}
	write("node.session.auth.password", "secret")
	if c, err := login(folder); err != nil || c.User != "hosts" || c.Secret != "secret" {
		t.Errorf("%v, %v", c, err)
	}
}
