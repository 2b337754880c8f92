//go:build acc

package host_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func diskXML(l *lab.Lab, lun lab.LUN) string {
	name, port, _ := strings.Cut(l.Target.Portal, ":")
	return fmt.Sprintf(`<disk type='network' device='disk'>
  <driver name='qemu' type='raw'/>
  <source protocol='iscsi' name='%s/%d'><host name='%s' port='%s'/></source>
  <target dev='vda' bus='virtio'/>
  <readonly/>
</disk>`, lun.IQN, lun.Number, name, port)
}

func TestAccMeasure(t *testing.T) {
	l := acctest.Lab(t)
	h, _ := hostA(t, l)
	const odd = 64<<20 + 512
	lun, err := l.Target.AddLUN(t.Context(), lab.LUNSpec{Size: odd})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Target.RemoveLUN(context.Background(), lun); err != nil {
			t.Error(err)
		}
	})
	if is, err := h.Measure(t.Context(), diskXML(l, lun), 0); err != nil || is.Size != odd {
		t.Errorf("%d bytes of %d: %v", is.Size, odd, err)
	}
	missing := lun
	missing.Number = 999
	if is, err := h.Measure(t.Context(), diskXML(l, missing), 0); err == nil || !strings.Contains(err.Error(), "open the volume to measure it") {
		t.Errorf("a logical unit that is not there has %d bytes: %v", is.Size, err)
	}
}

// A FIFO that a tenant has put in place of a file blocks only QEMU: the host continues to answer.
func TestAccOpens_FIFO(t *testing.T) {
	h, on := hostA(t, acctest.Lab(t))
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	xml := fmt.Sprintf(`<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='%s'/><backingStore/>
  <target dev='vda' bus='virtio'/><readonly/></disk>`, path)
	opened := make(chan error, 1)
	ctx, cancel := context.WithCancel(soon(t, lab.Patience(time.Minute)))
	defer cancel()
	go func() { opened <- h.Opens(ctx, xml) }()
	var err error
	// The host answers that QEMU is there, for longer than it needs to open a file.
	for waits, ended := (<-chan time.Time)(nil), false; !ended; {
		select {
		case err = <-opened:
			ended = true
			if waits == nil || ctx.Err() == nil {
				t.Errorf("QEMU was not seen to wait: %v", err)
			}
		case <-waits:
			cancel()
		default:
			if there := strings.Contains(virsh(t, on, "list", "--name"), host.MeasurePrefix); there && waits == nil {
				waits = time.After(3 * time.Second)
			}
		}
	}
	if err == nil {
		t.Error("QEMU has opened a FIFO without a writer")
	}
	if left := virsh(t, on, "list", "--all", "--name"); strings.Contains(left, host.MeasurePrefix) {
		t.Errorf("it is left:\n%s", left)
	}
}
