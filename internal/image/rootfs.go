package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// maxConfig is the maximal size of an image's configuration, in bytes, as of a manifest in Docker's registry.
const maxConfig = 4 << 20

// RootFS is the root file system of a container image, and the program that starts in it.
type RootFS struct {
	// Digest is that by which the image was asked for, perhaps of an index.
	Digest string
	// Layers begin with the lowest one.
	Layers []RootLayer
	// Architecture is in OCI's notation, with a variant where there is one: amd64, arm64, arm/v7.
	Architecture string
	// Wanted is the architecture that the image should have been for, if it is for another one; empty otherwise.
	Wanted string
	// Entrypoint and Command together are the program and its arguments; either may be empty.
	Entrypoint, Command []string
	// Environment is of NAME=value.
	Environment []string
	// User is as in the configuration: a name or number, perhaps with a group behind a colon.
	User, WorkingDirectory, StopSignal string
}

// RootLayer is a layer of a root file system.
type RootLayer struct {
	// ChainID is the same for layers with the same content over the same layers
	// (https://github.com/opencontainers/image-spec/blob/main/config.md#layer-chainid), like sha256:hex.
	ChainID string
	// Image is the reference of its image. Errors of Open and of what it has opened do not name it.
	Image string `json:"-"`
	// Open returns the unpacked archive. It returns io.EOF only after the layer was verified, packed and unpacked (see Drain).
	Open func(context.Context) (io.ReadCloser, error) `json:"-"`
}

// RootFS returns the root file system of the image with that digest. No layer is read yet.
func (c Container) RootFS(ctx context.Context, digest string) (RootFS, error) {
	hash, err := parseDigest(digest)
	if err != nil {
		return RootFS{}, err
	}
	_, r, err := c.dial(ctx)
	if err != nil {
		return RootFS{}, err
	}
	m, err := c.find(ctx, r, hash)
	if err != nil {
		return RootFS{}, c.explain(err)
	}
	raw, err := r.config(ctx, m.Config)
	if err != nil {
		return RootFS{}, c.explain(err)
	}
	config, err := parseConfig(raw, len(m.Layers))
	if err != nil {
		return RootFS{}, c.explain(fmt.Errorf("%w: %w", ErrUntrusted, err))
	}
	is := RootFS{
		Digest: digest, Architecture: platformOf(v1.Descriptor{Platform: config.Platform()}), Entrypoint: config.Config.Entrypoint,
		Command:     config.Config.Cmd,
		Environment: config.Config.Env, User: config.Config.User, WorkingDirectory: config.Config.WorkingDir,
		StopSignal: config.Config.StopSignal,
	}
	if !suits(is.Architecture, c.Arch) && !suits(c.Arch, is.Architecture) { // many images for arm have no variant
		is.Wanted = c.Arch
	}
	chain := ""
	for n, diff := range config.RootFS.DiffIDs {
		chain = chainID(chain, diff)
		is.Layers = append(is.Layers, RootLayer{ChainID: chain, Image: c.Reference, Open: opener(r, m.Layers[n], diff)})
	}
	return is, nil
}

// parseConfig parses an image's configuration, which must name that many layers.
func parseConfig(raw []byte, layers int) (*v1.ConfigFile, error) {
	var config v1.ConfigFile
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, fmt.Errorf("its configuration can't be read: %s", shortened(err))
	}
	ids := config.RootFS.DiffIDs
	if config.RootFS.Type != "layers" || len(ids) != layers || layers == 0 {
		return nil,
			fmt.Errorf("its configuration has %d layers, and its manifest %d. It may be no container image, but another artifact of a "+
				"registry", len(ids), layers)
	}
	if platformOf(v1.Descriptor{Platform: config.Platform()}) == "" {
		return nil, fmt.Errorf("it is for %.100q on %.100q, and not for Linux", config.OS, config.Architecture)
	}
	return &config, nil
}

// shortened is the text of an error that may repeat a whole value of what could not be parsed, such as a digest or a time of megabytes.
func shortened(err error) string { return fmt.Sprintf("%.300s", err.Error()) }

func chainID(below string, diff v1.Hash) string {
	if below == "" {
		return diff.String()
	}
	sum := sha256.Sum256([]byte(below + " " + diff.String()))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// opener opens a layer, whose content unpacked must have the digest diff.
func opener(r *registry, d v1.Descriptor, diff v1.Hash) func(context.Context) (io.ReadCloser, error) {
	want := checksum{diff.Algorithm, diff.Hex}
	return func(ctx context.Context) (io.ReadCloser, error) {
		layer, err := r.layer(ctx, d)()
		if err != nil {
			return nil, err
		}
		return rootLayer{verify(layer, want, -1, func(got checksum) error {
			return fmt.Errorf("%w: unpacked, a layer has the digest %s, and the configuration says %s", ErrUntrusted, got, want)
		}), layer, r.secrets}, nil
	}
}

// rootLayer keeps secrets out of the errors of a layer.
type rootLayer struct {
	io.Reader
	io.Closer
	secrets []string
}

func (l rootLayer) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = redact(err, l.secrets...)
	}
	return n, err
}

// config reads an image's configuration.
func (r *registry) config(ctx context.Context, descriptor json.RawMessage) ([]byte, error) {
	var d v1.Descriptor
	if err := json.Unmarshal(descriptor, &d); err != nil {
		return nil, fmt.Errorf("%w: its manifest names no configuration: %s", ErrUntrusted, shortened(err))
	}
	if d.Size <= 0 || d.Size > maxConfig || hashes[d.Digest.Algorithm] == nil {
		return nil, fmt.Errorf("%w: its manifest has a configuration of %d bytes with a digest of %q", ErrUntrusted, d.Size,
			d.Digest.Algorithm)
	}
	return r.read(ctx, "blobs", d.Digest.String(), checksum{d.Digest.Algorithm, d.Digest.Hex}, d.Size)
}
