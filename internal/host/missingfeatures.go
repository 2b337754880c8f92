package host

import (
	"context"
	"errors"
	"strings"

	"github.com/digitalocean/go-libvirt"
)

// MissingFeatures tells what the host's processor lacks for a guest of that hardware; it is empty if the guest can run there. cpu is the
// element cpu of a live domain, in which libvirt has listed what the guest really has; emulation is judged by what QEMU emulates. The modes
// host-passthrough and maximum list nothing: libvirt accepts them anywhere, so they are no proof that the guest can move.
func (h *Host) MissingFeatures(ctx context.Context, of Hardware, cpu string) (missing string, err error) {
	err = do(ctx, h, "compare processors", func(l *libvirt.Libvirt) error {
		_, err := l.ConnectCompareHypervisorCPU(nil, optional(of.Arch), optional(of.Type), optional(of.DomainType), cpu,
			uint32(libvirt.ConnectCompareCPUFailIncompatible))
		return err
	})
	var e libvirt.Error
	if errors.As(err, &e) && libvirt.ErrorNumber(e.Code) == libvirt.ErrCPUIncompatible {
		return lacks(e.Message), nil
	}
	return "", err
}

// lacks is the end of libvirt's message about a processor: the features, or else the reason.
func lacks(message string) string {
	return strings.TrimSpace(message[strings.LastIndex(message, ": ")+1:])
}
