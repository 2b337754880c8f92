// Package direct is storage that is named directly, without a claim. There is one file for each protocol.
package direct

import (
	"context"
	"errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Source is storage that is named directly.
type Source interface {
	// Validate checks all that can be known without asking anybody. It joins one source.Error for each wrong attribute.
	Validate() error
	// Storage is what the source names, without capacity and without credentials. Its error is Validate's.
	Storage() (volume.Volume, error)
	// Resolve gives the volume, whose capacity is nil, and its credentials. secrets is only asked when there is a secret
	// reference. The error is Validate's or that of reading the secret.
	Resolve(ctx context.Context, secrets source.SecretReader) (source.Resolved, error)
}

var _ = []Source{ISCSI{}, RBD{}, NBD{}, Gluster{}, NFS{}, HTTP{}, File{}, Block{}}

// SecretRef names a Kubernetes secret.
type SecretRef = source.SecretRef

// fieldErrors collects what is wrong, one source.Error for each attribute.
type fieldErrors struct{ all []error }

func (w *fieldErrors) add(attribute string, err error) {
	if err != nil {
		w.all = append(w.all, &source.Error{Attribute: attribute, Err: err})
	}
}

// err is nil when nothing is wrong.
func (w *fieldErrors) err() error { return errors.Join(w.all...) }

func checkSecretRef(ref SecretRef) error {
	if ref.Namespace == "" || ref.Name == "" {
		return errors.New("needs both namespace and name")
	}
	return nil
}

// resolved is a volume that needs no credentials.
func resolved(v volume.Volume, err error) (source.Resolved, error) {
	if err != nil {
		return source.Resolved{}, err
	}
	return source.Resolved{Volume: v}, nil
}
