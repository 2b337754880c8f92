package host

import (
	"context"
	"errors"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// Architecture is libvirt's name of the host's architecture, such as x86_64.
func (h *Host) Architecture(ctx context.Context) (string, error) {
	caps, err := h.capabilities(ctx)
	if err == nil && caps.Host.CPU == nil {
		err = h.failed("ask for the architecture", errors.New("libvirt does not tell it"))
	}
	if err != nil {
		return "", err
	}
	return caps.Host.CPU.Arch, nil
}

// UUID is libvirt's identifier of the host. It is the same after a restart.
func (h *Host) UUID(ctx context.Context) (string, error) {
	caps, err := h.capabilities(ctx)
	return caps.Host.UUID, err
}

// Labels are the host's security drivers that label the files of each domain, such as selinux and dac.
func (h *Host) Labels(ctx context.Context) (models []string, err error) {
	caps, err := h.capabilities(ctx)
	for _, m := range caps.Host.SecModel {
		models = append(models, m.Name)
	}
	return models, err
}

func (h *Host) capabilities(ctx context.Context) (libvirtxml.Caps, error) {
	return call(ctx, h, "ask for the capabilities", capabilities)
}

func capabilities(l *libvirt.Libvirt) (caps libvirtxml.Caps, err error) {
	text, err := l.ConnectGetCapabilities()
	if err != nil {
		return caps, err
	}
	err = caps.Unmarshal(text)
	return caps, err
}
