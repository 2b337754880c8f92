//go:build acc

package volumebinding_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// ofUnknownDriver is a claim of a CSI driver without a rule of its own, on a device that has the name of its handle.
func ofUnknownDriver(t *testing.T, l *lab.Lab, size int64, handle string) lab.ClaimSpec {
	t.Helper()
	spec := lab.ClaimSpec{
		Namespace: "devices", Name: "data", Size: size,
		Source: &corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: "block.example.com", VolumeHandle: handle, VolumeAttributes: map[string]string{"wwid": "3600508b400105e21"},
		}},
	}
	acctest.AddClaim(t, l, spec)
	return spec
}

func onDevice(path string) string {
	return fmt.Sprintf(`persistent_volume_claim = { namespace = "devices", claim_name = "data", device_path = %q }`, path)
}

// The device of a pattern is bound where it has the volume's size, on each host. Another device is refused, and so is none.
func TestAccVolumeBinding_DevicePath(t *testing.T) {
	l := acctest.Lab(t)
	device := acctest.Loop(t, l)
	other := acctest.Must(l.AddBlockDevice(t.Context(), acctest.StorageSize/2, nil))(t)
	acctest.Undo(t, func(ctx context.Context) error { return l.RemoveBlockDevice(ctx, other) })
	ofUnknownDriver(t, l, acctest.StorageSize, strings.TrimPrefix(device.Path, "/dev/"))
	cli := acctest.NewCLI(t)
	write := func(path string) {
		cli.Write("main.tf", acctest.Provider(l, "devices")+binding(onDevice(path), `access_mode = "read-shared"`, "host-a", "host-b"))
	}
	for path, parts := range map[string][]string{
		other.Path:                                 {"device_path leads to " + other.Path + " on host host-a, which is not the PersistentVolume's: it has 33554432 bytes"},
		"/dev/none/{.spec.csi.volumeHandle}":       {"host host-a can't open /dev/none/"},
		"/dev/{.spec.csi.volumeAttributes.device}": {"device_path", "device is not found"},
	} {
		write(path)
		if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message(parts...).MatchString(out) {
			t.Errorf("%s: %v:\n%s", path, err, out)
		}
	}
	heldBy(t, l, "devices", "data")
	write("/dev/{.spec.csi.volumeHandle}")
	cli.Must("apply", "-auto-approve", "-no-color")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	says(t, cli.Must("state", "show", "-no-color", data), fmt.Sprintf("uri = %q", device.Path))
	write(device.Path)
	says(t, cli.Must("plan", "-no-color"), "forces replacement")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// Hosts that have other names for a device have a binding each, in a mode that several can have.
func TestAccVolumeBinding_DevicePathOfEachHost(t *testing.T) {
	l := acctest.Lab(t)
	device := acctest.Loop(t, l)
	link := filepath.Join("/dev", rand.Text())
	if err := os.Symlink(device.Path, link); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(link) })
	ofUnknownDriver(t, l, acctest.StorageSize, "1")
	config := acctest.Provider(l, "devices")
	for host, path := range map[string]string{"host-a": device.Path, "host-b": link} {
		on := strings.Replace(binding(onDevice(path), `access_mode = "write-shared"`, host), `" "data"`, fmt.Sprintf(`" %q`, host), 1)
		config += strings.Replace(on, `name   = "data"`, fmt.Sprintf("name = %q", host), 1)
	}
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A host that does not answer about its devices refuses a binding, and changes nothing.
func TestAccVolumeBinding_InterruptedWithDevice(t *testing.T) {
	l := acctest.Lab(t)
	device := acctest.Loop(t, l)
	ofUnknownDriver(t, l, acctest.StorageSize, strings.TrimPrefix(device.Path, "/dev/"))
	cli, tap := tapped(t, l, "devices", binding(onDevice("/dev/{.spec.csi.volumeHandle}"), "", "host-a"))
	for _, f := range acctest.Points(map[lab.Call]int{lab.CallCreateXML: 1, lab.CallListNodeDevices: 1},
		append(acctest.CutsAndKills, lab.Fault{Refuse: true})) {
		t.Run(f.String(), func(t *testing.T) {
			if out, err := acctest.Interrupt(t, cli, tap, f); f.Refuse && err == nil {
				t.Errorf("it was bound:\n%s", out)
			}
			acctest.PutRight(t, cli, nil)
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "devices", "data")
		})
	}
}
