package host_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// upload makes a volume of an image and gives what is in its file then.
func upload(t *testing.T, h *host.Host, name string, image io.Reader) (content []byte, err error) {
	t.Helper()
	err = h.CreateVolume(t.Context(), "ssd", libvirtxml.StorageVolume{
		Name: name, Capacity: &libvirtxml.StorageVolumeSize{Value: 1}, Allocation: &libvirtxml.StorageVolumeSize{},
		Target: &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.DeleteVolume(context.WithoutCancel(t.Context()), "ssd", name); err != nil {
			t.Error(err)
		}
	})
	err = h.Upload(t.Context(), host.Upload{
		Pool: "ssd", Name: name, Image: image,
		Proceed: func(context.Context) error { return nil }, Report: func(host.Progress) {},
	})
	v, lookErr := h.Volume(t.Context(), "ssd", name)
	if lookErr != nil {
		t.Fatal(lookErr)
	}
	content, readErr := os.ReadFile(v.Path)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return content, err
}

func TestAccUpload(t *testing.T) {
	l := acctest.Lab(t)
	h, _ := hostA(t, l)
	noise := make([]byte, 3<<20+17)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(noise)
	for name, image := range map[string][]byte{
		"short": []byte("a short image"),
		"head":  noise[:64<<10],
		"long":  noise,
		"holes": bytes.Join([][]byte{noise[:1<<20], make([]byte, 5<<20), noise, make([]byte, 9<<20)}, nil),
		"empty": make([]byte, 2<<20),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := upload(t, h, "uploaded-"+name, bytes.NewReader(image))
			if err != nil || !bytes.Equal(got, image) {
				t.Errorf("%v, and %d of %d bytes are there", err, len(got), len(image))
			}
		})
	}
}
