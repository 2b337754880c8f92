package disk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// prepareContent sets the content of a disk with a source outside of the host, and returns the content's digest.
func (r *disk) prepareContent(
	ctx context.Context, h *host.Host, plan *model, s sourceModel, spec *content.Spec, diags *diag.Diagnostics,
) (digest string, err error) {
	if s.composed() != nil {
		return r.prepareComposed(ctx, *plan, s, spec)
	}
	if s.Root != nil {
		is, digest, err := r.prepareRoot(ctx, h, *s.Root, spec)
		plan.ImageConfiguration = configurationOf(is)
		plan.warnOfArchitecture(is, diags)
		plan.logLayers(ctx, spec)
		return digest, err
	}
	return s.Prepare(ctx, &r.Provider.Tags, h.Architecture, spec)
}

func (r *disk) prepareComposed(ctx context.Context, plan model, s sourceModel, spec *content.Spec) (digest string, err error) {
	// The versions are read before the content: if a secret changes in between, the older version is stored, and the next plan repairs
	// that. A version newer than the content would never be compared again.
	if digest, err = digestOf(ctx, s.composed(), func() (secretVersions, error) { return r.Provider.Cluster() }); err != nil {
		return "", err
	}
	whole, err := r.compose(ctx, plan, s)
	if err != nil {
		return "", err
	}
	spec.Content = &content.Image{ID: digest, Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(whole)), nil
	}}
	return digest, nil
}

// compose reads the secrets, and returns the content.
func (r *disk) compose(ctx context.Context, plan model, s sourceModel) ([]byte, error) {
	switch {
	case s.Env != nil:
		return r.environment(ctx, *s.Env)
	case s.Files != nil:
		return r.readFiles(ctx, *s.Files)
	case s.Ignition != nil:
		config, err := r.content(ctx, s.Ignition.parts()[0])
		if err != nil {
			return nil, err
		}
		return image.Ignition(config)
	}
	seed, err := r.seed(ctx, plan, *s.CloudInit)
	if err != nil {
		return nil, err
	}
	return seed.ISO()
}

// digestOf hashes the identity of composed content, not the content, which may be secret, and short enough to be guessed.
func digestOf(ctx context.Context, of composed, versions func() (secretVersions, error)) (string, error) {
	id, err := identityOf(ctx, of, versions)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
