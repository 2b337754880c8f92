package host

import (
	"context"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

func secret(id string) (libvirt.Secret, error) {
	u, err := uuid.Parse(id)
	return libvirt.Secret{UUID: libvirt.UUID(u)}, err
}

// DefineSecret defines a secret without a value, or changes the one with the same UUID.
func (h *Host) DefineSecret(ctx context.Context, xml string) error {
	return do(ctx, h, "define the secret", func(l *libvirt.Libvirt) error {
		_, err := l.SecretDefineXML(xml, 0)
		return err
	})
}

// SetSecretValue sets the value of a secret.
func (h *Host) SetSecretValue(ctx context.Context, id string, value []byte) error {
	return do(ctx, h, "set the value of secret "+id, func(l *libvirt.Libvirt) error {
		s, err := secret(id)
		if err != nil {
			return err
		}
		return l.SecretSetValue(s, value, 0)
	})
}

// SecretXML is the definition of a secret, without its value, or ErrNotFound.
func (h *Host) SecretXML(ctx context.Context, id string) (string, error) {
	return call(ctx, h, "read secret "+id, func(l *libvirt.Libvirt) (string, error) {
		s, err := secret(id)
		if err != nil {
			return "", err
		}
		return l.SecretGetXMLDesc(s, 0)
	})
}

// UndefineSecret removes a secret and its value.
func (h *Host) UndefineSecret(ctx context.Context, id string) error {
	return do(ctx, h, "remove secret "+id, func(l *libvirt.Libvirt) error {
		s, err := secret(id)
		if err != nil {
			return err
		}
		return l.SecretUndefine(s)
	})
}

// SecretsOfVolumes are the UUIDs of all secrets whose usage is a volume, by that.
func (h *Host) SecretsOfVolumes(ctx context.Context) (map[string]string, error) {
	return call(ctx, h, "list the secrets", func(l *libvirt.Libvirt) (map[string]string, error) {
		all, _, err := l.ConnectListAllSecrets(1, 0)
		if isCode(err, libvirt.ErrNoSupport) {
			err = nil // this libvirt has no driver for secrets
		}
		found := map[string]string{}
		for _, s := range all {
			if libvirt.SecretUsageType(s.UsageType) == libvirt.SecretUsageTypeVolume {
				found[s.UsageID] = uuid.UUID(s.UUID).String()
			}
		}
		return found, err
	})
}

// SecretOfVolume is the UUID of the secret whose usage is a volume of that name, or ErrNotFound. libvirt allows one secret for each usage.
func (h *Host) SecretOfVolume(ctx context.Context, usage string) (id string, err error) {
	return call(ctx, h, "look for the secret of volume "+usage, func(l *libvirt.Libvirt) (string, error) {
		s, err := l.SecretLookupByUsage(int32(libvirt.SecretUsageTypeVolume), usage)
		if isCode(err, libvirt.ErrNoSupport) {
			err = ErrNotFound // this libvirt has no driver for secrets
		}
		return uuid.UUID(s.UUID).String(), err
	})
}
