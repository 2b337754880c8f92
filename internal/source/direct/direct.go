// Package direct resolves storage that the configuration names directly, without a claim. There is one file for each protocol.
package direct

import (
	"context"
	"errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Source is storage that the configuration names directly.
type Source interface {
	// Validate checks everything that can be checked offline. It joins one source.Error for each invalid attribute.
	Validate() error
	// Storage returns the volume, without capacity and without credentials. Its error is that of Validate.
	Storage() (volume.Volume, error)
	// Resolve returns the volume, whose capacity is nil, and its credentials. secrets is used only if there is a secret reference. The
	// error is that of Validate or of reading the secret.
	Resolve(ctx context.Context, secrets source.SecretReader) (source.Resolved, error)
}

var _ = []Source{ISCSI{}, RBD{}, NBD{}, Gluster{}, NFS{}, HTTP{}, File{}, Block{}}

// SecretRef names a Kubernetes secret.
type SecretRef = source.SecretRef

// fieldErrors collects one source.Error for each invalid attribute.
type fieldErrors struct{ all []error }

func (w *fieldErrors) add(attribute string, err error) {
	if err != nil {
		w.all = append(w.all, &source.Error{Attribute: attribute, Err: err})
	}
}

// err returns all errors joined; nil if there are none.
func (w *fieldErrors) err() error { return errors.Join(w.all...) }

func checkSecretRef(ref SecretRef) error {
	if ref.Namespace == "" || ref.Name == "" {
		return errors.New("needs both namespace and name")
	}
	return nil
}

// resolved returns a volume that needs no credentials.
func resolved(v volume.Volume, err error) (source.Resolved, error) {
	if err != nil {
		return source.Resolved{}, err
	}
	return source.Resolved{Volume: v}, nil
}
