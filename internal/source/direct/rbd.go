package direct

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// RBD is an image in a Ceph cluster.
type RBD struct {
	// Monitors are in the forms of source.ParseMonitors: host:port, v1:host:port, or [v2:host:3300/0,v1:host:6789/0].
	Monitors []string
	// Pool defaults to rbd.
	Pool string
	// Namespace is a RADOS namespace of the pool; empty means its default one.
	Namespace string
	Image     string
	// Username is the Ceph user, without the prefix client. Empty means that the cluster needs no user, or, with a SecretRef, that the
	// secret names it.
	Username string
	// Key is the user's key as Ceph prints it, in base64.
	Key []byte
	// KeyUnknown is whether the key is known only during the apply; Resolve then returns credentials without one.
	KeyUnknown bool
	// KeyVersion is the version of the key, which the user counts.
	KeyVersion string
	// SecretRef is a Kubernetes secret instead of Key; nil means none. With a Username the secret has the key under key, as for in-tree
	// volumes; without, it has userID and userKey, as for ceph-csi.
	SecretRef *SecretRef
}

// Validate checks everything that can be checked offline. It joins one source.Error for each invalid attribute.
func (r RBD) Validate() error {
	_, err := r.Storage()
	return err
}

func (r RBD) image() source.RBDImage {
	return source.RBDImage{Pool: cmp.Or(r.Pool, "rbd"), Namespace: r.Namespace, Image: r.Image}
}

// Storage returns the image, without capacity and without credentials.
func (r RBD) Storage() (volume.Volume, error) {
	var w fieldErrors
	monitors, err := source.ParseMonitors(r.Monitors)
	w.add("monitors", err)
	for _, wrong := range r.image().Check() {
		w.add(wrong.Attribute, wrong.Err)
	}
	r.validateCredentials(&w)
	if err := w.err(); err != nil {
		return volume.Volume{}, err
	}
	return source.RBDVolume(monitors, r.image(), nil), nil
}

func (r RBD) validateCredentials(w *fieldErrors) {
	hasKey := len(r.Key) > 0 || r.KeyUnknown
	if r.Username != "" {
		w.add("username", source.CheckCephUser(r.Username))
	}
	switch {
	case r.SecretRef != nil && hasKey:
		w.add("key_wo", errors.New("conflicts with secret_ref, which holds the key, too: use one of them"))
	case r.SecretRef != nil:
		w.add("secret_ref", checkSecretRef(*r.SecretRef))
	case r.Username != "" && !hasKey:
		w.add("key_wo", fmt.Errorf("is missing or empty, but the Ceph user %q needs a key", r.Username))
	case r.Username == "" && hasKey:
		w.add("username", errors.New("is missing, but key_wo is the key of a Ceph user, such as admin"))
	case len(r.Key) > 0:
		_, err := source.CephCredentials(r.Username, r.Key, "")
		w.add("key_wo", err)
	}
}

// Resolve returns the volume, whose capacity is nil, and its credentials. secrets is used only if there is a SecretRef. The error is that
// of Validate or of reading the secret.
func (r RBD) Resolve(ctx context.Context, secrets source.SecretReader) (source.Resolved, error) {
	v, err := r.Storage()
	if err != nil {
		return source.Resolved{}, err
	}
	credentials, err := r.credentials(ctx, secrets)
	if err != nil {
		return source.Resolved{}, err
	}
	found := source.WithCredentials(v, credentials)
	if hint := r.image().Hint(); hint != "" {
		found.Warnings = []string{hint}
	}
	return found, nil
}

func (r RBD) credentials(ctx context.Context, secrets source.SecretReader) (*volume.Credentials, error) {
	switch {
	case r.SecretRef != nil && r.Username != "":
		return source.Login{Form: source.CephKey, Secret: *r.SecretRef, Username: r.Username}.Read(ctx, secrets, "secret_ref")
	case r.SecretRef != nil:
		return source.Login{Form: source.CephUser, Secret: *r.SecretRef}.Read(ctx, secrets, "secret_ref")
	case r.KeyUnknown:
		return source.CephCredentials(r.Username, nil, r.KeyVersion)
	case r.Username != "":
		return source.CephCredentials(r.Username, r.Key, r.KeyVersion)
	}
	return nil, nil
}
