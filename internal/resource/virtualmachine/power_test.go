package virtualmachine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// A destroy that waits for its guest in vain says what works in a replacement, too, where no apply can set force_stop.
func TestVirtualMachine_DestroyNamesWayOut(t *testing.T) {
	m := model{Name: types.StringValue("web")}
	text := m.ofDestroy(fmt.Errorf("shut down: %w", host.ErrStillRunning)).Error()
	if forceOff, apply := strings.Index(text, "virsh destroy web\n"), strings.Index(text, "apply force_stop = true"); forceOff < 0 || apply < forceOff {
		t.Errorf("it says %q", text)
	}
	if other := errors.New("refused"); m.ofDestroy(other).Error() != other.Error() {
		t.Error("another error is changed")
	}
}
