package source

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// chapAuth is libvirt's name for CHAP credentials.
const chapAuth = "iscsi"

// The keys of a secret that Kubernetes uses for the CHAP session of an iSCSI volume.
const (
	usernameKey   = "node.session.auth.username"
	passwordKey   = "node.session.auth.password"
	usernameInKey = "node.session.auth.username_in"
	passwordInKey = "node.session.auth.password_in"
)

// SecretRef names a Kubernetes secret.
type SecretRef struct{ Namespace, Name string }

func (r SecretRef) String() string { return r.Namespace + "/" + r.Name }

// SecretReader reads Kubernetes secrets.
type SecretReader interface {
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// VersionReader reads the versions of Kubernetes secrets, without their data.
type VersionReader interface {
	SecretVersion(ctx context.Context, namespace, name string) (string, error)
}

// CHAP are the credentials of an iSCSI session.
func CHAP(username string, password []byte, version string) *volume.Credentials {
	return &volume.Credentials{Type: chapAuth, Username: username, Secret: password, Version: version}
}

// WithCHAP is v as one that asks for these credentials.
func WithCHAP(v volume.Volume, c *volume.Credentials) Resolved {
	v.Images[0].Auth = &volume.Auth{Type: c.Type, Username: c.Username}
	return Resolved{Volume: v, Credentials: c}
}

// ReadCHAP reads the credentials of an iSCSI session. A missing secret is a NotReady, one without the right keys an
// Error that blames attribute. No error holds anything of the secret's data.
func ReadCHAP(ctx context.Context, r SecretReader, ref SecretRef, attribute string) (*volume.Credentials, error) {
	s, err := r.Secret(ctx, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return nil, NotReadyf("the Secret %s with the CHAP credentials does not exist: %w", ref, err)
	}
	if err != nil {
		return nil, err
	}
	for _, key := range []string{usernameInKey, passwordInKey} {
		if len(s.Data[key]) > 0 {
			return nil, Errorf(attribute, "the Secret %s asks for mutual CHAP (key %s), which QEMU does not support: "+
				"give this initiator one-way CHAP at the target and remove the keys that end in _in", ref, key)
		}
	}
	for _, key := range []string{usernameKey, passwordKey} {
		if len(s.Data[key]) == 0 {
			return nil, Errorf(attribute, "the Secret %s has no value under the key %s, which a CHAP session needs", ref, key)
		}
	}
	return CHAP(string(s.Data[usernameKey]), s.Data[passwordKey], s.ResourceVersion), nil
}

// CurrentVersion is the version of a secret that is in use already. A secret that is gone or may not be read is no
// error, because hosts have their copy: then version is empty and warning says why.
func CurrentVersion(ctx context.Context, r VersionReader, ref SecretRef) (version, warning string, err error) {
	version, err = r.SecretVersion(ctx, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", "Whether the CHAP credentials in the Secret " + ref.String() + " have changed is not known; " +
			"the hosts keep what they have: " + err.Error(), nil
	}
	return version, "", err
}
