//go:build acc

package host_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// volumeCopier copies volumes from host-a to host-b.
type volumeCopier struct {
	a, b       *host.Host
	labA, labB *lab.Host
}

func newVolumeCopier(t testing.TB) volumeCopier {
	t.Helper()
	l := acctest.Lab(t)
	f := registry(t, l)
	a, failed := f.Host("host-a")
	b, err := f.Host("host-b")
	if err := errors.Join(failed, err); err != nil {
		t.Fatal(err)
	}
	return volumeCopier{a: a, b: b, labA: l.Hosts["host-a"], labB: l.Hosts["host-b"]}
}

// source has write fill a new volume's file on host-a, and returns its path.
func (c volumeCopier) source(t testing.TB, name string, write func(path string) error) (path string) {
	t.Helper()
	emptyVolume(t, c.a, name)
	v, err := c.a.Volume(t.Context(), "ssd", name)
	if err == nil {
		err = write(v.Path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v.Path
}

// copy copies a volume into a new one of the same name.
func (c volumeCopier) copy(ctx context.Context, name string) error {
	return c.a.CopyVolumeTo(ctx, c.b, host.VolumeCopy{
		Pool: "ssd", Name: name, ToPool: "ssd", ToName: name,
		BeforeCommit: func(context.Context) error { return nil }, Report: func(host.Progress) {},
	})
}

// written writes parts at offsets into a file of that length.
func written(length int64, parts map[int64][]byte) func(path string) error {
	return func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		for at, part := range parts {
			_, failed := f.WriteAt(part, at)
			err = errors.Join(err, failed)
		}
		return errors.Join(err, f.Truncate(length), f.Close())
	}
}

// allocated is what a file takes of its file system, in bytes.
func allocated(t *testing.T, path string) int64 {
	t.Helper()
	is := acctest.Must(os.Stat(path))(t)
	return is.Sys().(*syscall.Stat_t).Blocks * 512
}

func TestAccCopyVolumeTo(t *testing.T) {
	const block = 64 << 10
	c := newVolumeCopier(t)
	many := noise(80 * mib)
	noise := many[:3*mib]
	for name, write := range map[string]func(string) error{
		"one":       written(1, map[int64][]byte{0: {7}}),
		"zero":      written(1, nil),
		"odd":       written(513, map[int64][]byte{0: noise[:513]}),
		"head":      written(block, map[int64][]byte{0: noise[:block]}),
		"behind":    written(block+1, map[int64][]byte{0: noise[:block+1]}),
		"data":      written(3*mib-17, map[int64][]byte{0: noise[:3*mib-17]}),
		"empty":     written(64*mib, nil),
		"odd-holes": written(96*mib+5, map[int64][]byte{3 << 12: noise[:1<<12], 20*mib + 1<<12: noise, 96 * mib: noise[:5]}),
		"tail":      written(96*mib+13, map[int64][]byte{0: noise[:block]}),
		"stretches": written(90*mib, map[int64][]byte{0: noise[:block], mib: many}),
		"qcow2":     qcow2,
		"ploop":     written(mib, map[int64][]byte{0: append([]byte("WithoutFreeSpace"), noise[:mib-16]...)}),
	} {
		t.Run(name, func(t *testing.T) {
			from := c.source(t, "copy-"+name, write)
			emptyVolume(t, c.b, "copy-"+name)
			path := acctest.Must(c.b.Volume(t.Context(), "ssd", "copy-"+name))(t).Path
			if err := c.copy(t.Context(), "copy-"+name); err != nil {
				t.Fatal(err)
			}
			want, got := acctest.Must(os.ReadFile(from))(t), acctest.Must(os.ReadFile(path))(t)
			if !bytes.Equal(got, want) {
				t.Errorf("the %d bytes of the copy differ from the %d of the source", len(got), len(want))
			}
			// The head is never a hole, and neither is any other part of a block that has data.
			if got, want := allocated(t, path), allocated(t, from); got > want+4*block {
				t.Errorf("the copy takes %d bytes, and the source %d", got, want)
			}
		})
	}
}

// qcow2 is the top layer of a chain, with data: what is below is not copied.
func qcow2(path string) error {
	base := filepath.Join(filepath.Dir(path), "copy-base")
	defer func() { _ = os.Remove(base) }()
	for _, args := range [][]string{
		{"qemu-img", "create", "-q", "-f", "raw", base, "256M"},
		{"qemu-img", "create", "-q", "-f", "qcow2", "-b", base, "-F", "raw", path},
		{"qemu-io", "-f", "qcow2", "-c", "write -P 7 1M 5M", "-c", "write -P 9 200M 64k", path},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil { //nolint:noctx // they are short
			return errors.New(string(out))
		}
	}
	return nil
}

// What is in the file is not what was sent: one byte changes before it is read back, while the copy runs or after it has been sent.
func TestAccCopyVolumeTo_OtherBytes(t *testing.T) {
	c := newVolumeCopier(t)
	direct := c.b
	var tap *lab.Tap
	c.b, tap = tappedHost(t, c.labB)
	for name, length := range map[string]int64{"while it runs": 100 * mib, "after it": 4 * mib} {
		t.Run(name, func(t *testing.T) {
			c.source(t, "other", written(length, map[int64][]byte{0: noise(int(length))}))
			emptyVolume(t, direct, "other")
			path := acctest.Must(direct.Volume(t.Context(), "ssd", "other"))(t).Path
			tap.Arm(lab.Fault{Call: lab.CallVolumeDownload, Nth: 1, Hold: true})
			copied := make(chan error, 1)
			go func() { copied <- c.copy(t.Context(), "other") }()
			acctest.Eventually(t, "the first part is to be read back", func() error {
				if !tap.Fired() {
					return errors.New("it is not")
				}
				return nil
			})
			err := flip(path, 2*mib)
			tap.Release()
			if err != nil {
				t.Error(err)
			}
			if err := <-copied; !errors.Is(err, host.ErrTorn) {
				t.Errorf("got %v", err)
			}
			unfinished(t, direct, "other")
		})
	}
}

// flip changes a byte of a file.
func flip(path string, offset int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	b := make([]byte, 1)
	if _, err = f.ReadAt(b, offset); err == nil {
		_, err = f.WriteAt([]byte{^b[0]}, offset)
	}
	return errors.Join(err, f.Close())
}

// What can't be read back while the copy runs is read back after it.
func TestAccCopyVolumeTo_ReadsBackLater(t *testing.T) {
	const length = 100 * mib
	c := newVolumeCopier(t)
	direct := c.b
	var tap *lab.Tap
	c.b, tap = tappedHost(t, c.labB)
	c.source(t, "later", written(length, map[int64][]byte{0: noise(length)}))
	emptyVolume(t, direct, "later")
	tap.Arm(lab.Fault{Call: lab.CallVolumeDownload, Nth: 1, Refuse: true})
	if err := c.copy(t.Context(), "later"); err != nil || !tap.Fired() {
		t.Errorf("fired is %t, and it says %v", tap.Fired(), err)
	}
	if !bytes.Equal(contentOf(t, direct, "later"), noise(length)) {
		t.Error("the copy differs")
	}
	if back := tap.Received(); back < length || back > length*102/100 {
		t.Errorf("%d bytes were read back of %d", back, length)
	}
}

// Neither reading, nor writing, nor reading back transfers holes.
func TestAccCopyVolumeTo_SkipsHoles(t *testing.T) {
	const data = 16 * mib
	c := newVolumeCopier(t)
	var from, to *lab.Tap
	c.a, from = tappedHost(t, c.labA)
	c.b, to = tappedHost(t, c.labB)
	c.source(t, "holes", func(path string) error {
		return written(8<<30, map[int64][]byte{mib: noise(data / 2), 5 << 30: noise(data / 2)})(path)
	})
	emptyVolume(t, c.b, "holes")
	if err := c.copy(t.Context(), "holes"); err != nil {
		t.Fatal(err)
	}
	for name, bytes := range map[string]int64{"sent by the source": from.Received(), "sent to the target": to.Uploaded(), "read back": to.Received()} {
		if bytes < data || bytes > data*102/100 {
			t.Errorf("%d bytes of %d were %s", bytes, data, name)
		}
	}
}

// A copy that was broken off leaves the marker of an unfinished upload, and the error tells which host it was.
func TestAccCopyVolumeTo_BrokenOff(t *testing.T) {
	c := newVolumeCopier(t)
	c.source(t, "broken", written(32*mib, map[int64][]byte{0: noise(16 * mib)}))
	a, b := c.a, c.b
	var from, to *lab.Tap
	c.a, from = tappedHost(t, c.labA)
	c.b, to = tappedHost(t, c.labB)
	for name, f := range map[string]struct {
		tap   *lab.Tap
		fault lab.Fault
		host  string
	}{
		"the source":             {from, lab.Fault{Call: lab.CallVolumeDownload, Nth: 1, After: true}, "host-a"},
		"the source refuses":     {from, lab.Fault{Call: lab.CallVolumeDownload, Nth: 1, Refuse: true}, "host-a"},
		"the source at the end":  {from, lab.Fault{Call: lab.CallVolumeDownload, Nth: 2}, "host-a"},
		"the target":             {to, lab.Fault{Call: lab.CallVolumeUpload, Nth: 1, AtByte: 8 * mib}, "host-b"},
		"the target's read-back": {to, lab.Fault{Call: lab.CallVolumeDownload, Nth: 1, After: true}, "host-b"},
		"the target's head":      {to, lab.Fault{Call: lab.CallVolumeUpload, Nth: 2}, "host-b"},
	} {
		t.Run(name, func(t *testing.T) {
			emptyVolume(t, b, "broken")
			f.tap.Arm(f.fault)
			err := c.copy(t.Context(), "broken")
			var at *host.Error
			if !errors.As(err, &at) || at.Host != f.host || !f.tap.Fired() {
				t.Errorf("fired is %t, and it says %v", f.tap.Fired(), err)
			}
			unfinished(t, b, "broken")
		})
	}
	emptyVolume(t, b, "broken")
	c.a, c.b = a, b
	if err := c.copy(t.Context(), "broken"); err != nil {
		t.Error(err)
	}
}

// unfinished fails the test if the volume's file begins with anything but the marker, or is longer than nothing without it.
func unfinished(t *testing.T, h *host.Host, name string) {
	t.Helper()
	if content := contentOf(t, h, name); len(content) > 1 && !bytes.HasPrefix(content, []byte("virtclaim: this upload is not finished\n")) {
		t.Errorf("%d bytes are there, which begin with %q", len(content), content[:40])
	}
}

func TestAccCopyVolumeTo_Canceled(t *testing.T) {
	c := newVolumeCopier(t)
	c.source(t, "canceled", written(32*mib, map[int64][]byte{0: noise(16 * mib)}))
	emptyVolume(t, c.b, "canceled")
	gone := errors.New("Ctrl-C")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := c.a.CopyVolumeTo(ctx, c.b, host.VolumeCopy{
		Pool: "ssd", Name: "canceled", ToPool: "ssd", ToName: "canceled", Report: func(host.Progress) {},
		BeforeCommit: func(context.Context) error {
			cancel(gone)
			return nil
		},
	})
	if !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	unfinished(t, c.b, "canceled")
}

// What does not fit is lost in the middle, at the end, or before a hole at the end, with which the file has its length nevertheless.
func TestAccCopyVolumeTo_TargetFull(t *testing.T) {
	const room = 4 * mib
	c := newVolumeCopier(t)
	remove := acctest.Must(c.labB.AddSmallPool(t.Context(), "small", room))(t)
	acctest.Undo(t, remove)
	noise := noise(2 * room)
	for name, write := range map[string]func(string) error{
		"in the middle": written(2*room, map[int64][]byte{0: noise}),
		"at the end":    written(room+5, map[int64][]byte{0: noise[:room+5]}),
		"before a hole": written(64*mib, map[int64][]byte{0: noise[:room+mib/2]}),
	} {
		t.Run(name, func(t *testing.T) {
			c.source(t, "full", write)
			createVolumeIn(t, c.b, "small", "full")
			err := c.a.CopyVolumeTo(t.Context(), c.b, host.VolumeCopy{
				Pool: "ssd", Name: "full", ToPool: "small", ToName: "full", Report: func(host.Progress) {},
				BeforeCommit: func(context.Context) error {
					t.Error("it is about to be committed")
					return nil
				},
			})
			var at *host.Error
			if !errors.As(err, &at) || at.Host != "host-b" || !errors.Is(err, host.ErrTorn) && !strings.Contains(err.Error(), "No space left") {
				t.Errorf("got %v", err)
			}
			if err := c.b.DeleteVolume(t.Context(), "small", "full"); err != nil {
				t.Error(err)
			}
		})
	}
}
