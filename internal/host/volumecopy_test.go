package host

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/digitalocean/go-libvirt"
)

const (
	procVolumeInfo     = 98
	procVolumeUpload   = 208
	procVolumeDownload = 209
)

// downloading returns a daemon whose downloads have these contents, one after the other, and the host.
func downloading(t *testing.T, contents ...string) (*daemon, *Host) {
	t.Helper()
	d := volumeDaemon()
	d.answers[procVolumeInfo] = make([]byte, 20)
	d.downloads = contents
	h := d.connected(t)
	h.uri = &url.URL{Scheme: "qemu", Path: "/system", RawQuery: "socket=" + d.listen(t)}
	return d, h
}

// copied copies a volume to host-b.
func copied(t *testing.T, from, to *Host) error {
	t.Helper()
	to.Key = "host-b"
	return from.CopyVolumeTo(t.Context(), to, VolumeCopy{
		Pool: "ssd", Name: "disk", ToPool: "hdd", ToName: "copy", Report: func(Progress) {},
		BeforeCommit: func(context.Context) error { return errors.New("it was committed") },
	})
}

// libvirtd may end a stream like a complete one when reading has failed: what it has sent until then must not become a disk.
func TestCopyVolumeTo_CutShort(t *testing.T) {
	for name, behind := range map[string]string{"more bytes": "tt", "fewer bytes": ""} {
		_, from := downloading(t, "conten", behind)
		target, to := downloading(t)
		target.errors[procVolumeUpload] = failure(libvirt.ErrInternalError, "it was uploaded")
		err := copied(t, from, to)
		var at *Error
		if !errors.Is(err, errCutShort) || !errors.As(err, &at) || at.Host != "host-a" || strings.Contains(err.Error(), "uploaded") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCopyVolumeTo_ErrorTellsHost(t *testing.T) {
	for name, c := range map[string]struct {
		refuse func(source, target *daemon)
		host   string
	}{
		"the source has no such volume": {func(source, _ *daemon) {
			source.errors[procVolumeDownload] = failure(libvirt.ErrNoStorageVol, "refused")
		}, "host-a"},
		"the target has no room": {func(_, target *daemon) {
			target.errors[procVolumeUpload] = failure(libvirt.ErrSystemError, "refused")
		}, "host-b"},
	} {
		source, from := downloading(t, "content", "t")
		target, to := downloading(t)
		c.refuse(source, target)
		err := copied(t, from, to)
		var at *Error
		if !errors.As(err, &at) || at.Host != c.host || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: got %v", name, err)
		}
		if isLost := errors.Is(err, ErrNotFound); isLost != (c.host == "host-a") {
			t.Errorf("%s: it is not found, %t", name, isLost)
		}
	}
}
