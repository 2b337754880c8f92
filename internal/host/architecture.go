package host

import (
	"context"
	"errors"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// Architecture is the host's own, in libvirt's words, such as x86_64.
func (h *Host) Architecture(ctx context.Context) (string, error) {
	return call(ctx, h, "ask for the architecture", func(l *libvirt.Libvirt) (string, error) {
		text, err := l.ConnectGetCapabilities()
		if err != nil {
			return "", err
		}
		var caps libvirtxml.Caps
		if err := caps.Unmarshal(text); err != nil {
			return "", err
		}
		if caps.Host.CPU == nil {
			return "", errors.New("libvirt does not tell it")
		}
		return caps.Host.CPU.Arch, nil
	})
}
