package host_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

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

func TestAccCapacity(t *testing.T) {
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
	if size, err := h.Capacity(t.Context(), diskXML(l, lun)); err != nil || size != odd {
		t.Errorf("%d bytes of %d: %v", size, odd, err)
	}
	missing := lun
	missing.Number = 999
	if size, err := h.Capacity(t.Context(), diskXML(l, missing)); err == nil || !strings.Contains(err.Error(), "open the volume to measure it") {
		t.Errorf("a logical unit that is not there has %d bytes: %v", size, err)
	}
}
