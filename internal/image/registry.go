package image

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// registry reads the manifests and layers of a repository. It reads by digest, and verifies that.
type registry struct {
	repository name.Repository
	client     *http.Client
	// scheme is https, or http for registries of this machine and the local network without TLS.
	scheme string
	// mostOfLayer is the maximal number of bytes of a layer, packed or not.
	mostOfLayer int64
	// missing is login.missing.
	missing string
	// secrets must not be in errors.
	secrets []string
}

// dial logs in to the registry. Credentials are sent to the registry and its token server, but not to servers that it redirects to. Without
// TLS only a pinned image, referenced by its digest, is read, and without credentials.
func dial(ctx context.Context, repository name.Repository, auth login, pinned bool) (*registry, error) {
	r := &registry{repository: repository, scheme: repository.Scheme(), missing: auth.missing}
	config, err := authn.Authorization(ctx, auth.Authenticator)
	if err != nil {
		return nil, fmt.Errorf("getting the credentials for %s: %w", repository.RegistryStr(), err)
	}
	r.secrets = []string{config.Password, config.Auth, config.IdentityToken, config.RegistryToken}
	if config.Password != "" {
		r.secrets = append(r.secrets, base64.StdEncoding.EncodeToString([]byte(config.Username+":"+config.Password)))
	}
	hasCredentials := *config != (authn.AuthConfig{})
	var through http.RoundTripper = dropErrorBodies{retryTransport{network}}
	if !pinned || hasCredentials {
		through = requireTLS{through}
	}
	t, err := transport.NewWithContext(ctx, repository.Registry, auth.Authenticator, through,
		[]string{repository.Scope(transport.PullScope)})
	if err != nil && hasCredentials {
		err = withoutAnswer(err)
	}
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	if hasCredentials {
		t = quiet{t}
	}
	r.client = newClient(t)
	return r, nil
}

// address returns the URL of a manifest or a blob.
func (r *registry) address(kind, identifier string) string {
	return fmt.Sprintf("%s://%s/v2/%s/%s/%s", r.scheme, r.repository.RegistryStr(), r.repository.RepositoryStr(), kind, identifier)
}

// resolve queries the digest of a tag. It tries HEAD first, because most registries count only GET requests for their rate limit.
func (r *registry) resolve(ctx context.Context, tag string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, r.address("manifests", tag), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", strings.Join(manifestTypes, ","))
	if resp, err := r.client.Do(req); err == nil {
		_ = resp.Body.Close()
		digest, err := v1.NewHash(resp.Header.Get("Docker-Content-Digest"))
		if resp.StatusCode == http.StatusOK && err == nil {
			return digest.String(), nil
		}
	}
	// Some registries do not support HEAD, or return no digest for it; and only GET returns an error's details.
	raw, err := r.read(ctx, "manifests", tag, checksum{}, -1)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// manifest reads a manifest by its digest; a negative size is unknown.
func (r *registry) manifest(ctx context.Context, digest v1.Hash, size int64) (manifest, error) {
	raw, err := r.read(ctx, "manifests", digest.String(), checksum{digest.Algorithm, digest.Hex}, size)
	if err != nil {
		return manifest{}, err
	}
	return parseManifest(raw, r.mostOfLayer)
}

// read reads a manifest or a configuration.
func (r *registry) read(ctx context.Context, kind, identifier string, want checksum, size int64) ([]byte, error) {
	address := r.address(kind, identifier)
	from := &rangeReader{ctx: ctx, client: r.client, address: address}
	if kind == "manifests" {
		from.accept = strings.Join(manifestTypes, ",")
	}
	body, err := from.open()
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	defer func() { _ = body.Close() }()
	few := &limited{r: body, limit: max(size, maxManifest), tooMuch: "its manifest has more than %d bytes"}
	raw, err := io.ReadAll(verify(few, want, size, func(got checksum) error {
		return fmt.Errorf("%w: what the registry sent has the digest %s, and not %s", ErrUntrusted, got, want)
	}))
	return raw, r.explain(ctx, err)
}

// layer returns one of an image's layers, unpacked. It returns io.EOF only if digest and size match.
func (r *registry) layer(ctx context.Context, d v1.Descriptor) Layer {
	want := checksum{d.Digest.Algorithm, d.Digest.Hex}
	return func() (io.ReadCloser, error) {
		body, err := (&rangeReader{ctx: ctx, client: r.client, address: r.address("blobs", want.String()), checked: true}).open()
		if err != nil {
			return nil, r.explain(ctx, err)
		}
		in := &source{r: verify(body, want, d.Size, func(got checksum) error {
			return fmt.Errorf("%w: a layer has the digest %s, and not %s", ErrUntrusted, got, want)
		})}
		out, _, err := decode(bufio.NewReaderSize(in, 64<<10), in)
		if err != nil {
			return nil, errors.Join(err, body.Close())
		}
		few := &limited{r: out, limit: r.mostOfLayer, tooMuch: "unpacked, a layer has more than %d bytes"}
		return layerReader{few, out, body}, nil
	}
}

type layerReader struct {
	io.Reader
	out  *decoder
	body io.Closer
}

func (l layerReader) Close() error {
	l.out.Close()
	return l.body.Close()
}

// explain adds the remedy to an error of a registry.
func (r *registry) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var (
		code   int
		login  *transport.Error
		answer refusal
	)
	if errors.As(err, &login) {
		code = login.StatusCode
	} else if errors.As(err, &answer) {
		code = answer.code
	}
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		remedy := cmp.Or(r.missing, "Check that it is there, and username and password, or docker login")
		err = fmt.Errorf("the registry does not let it be read. %s: %w", remedy, err)
	case http.StatusNotFound:
		err = fmt.Errorf("the registry does not have it. Check the name and the tag or digest: %w", err)
	}
	return redact(err, r.secrets...)
}
