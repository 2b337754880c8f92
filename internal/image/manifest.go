package image

import (
	"encoding/json"
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The limits of a manifest: bytes, and layers. Those of real images are far below.
const (
	maxManifest = 1 << 20
	maxLayers   = 500
)

// manifestTypes are the supported manifests and indexes, of OCI and Docker.
var manifestTypes = []string{
	string(types.OCIImageIndex), string(types.OCIManifestSchema1), string(types.DockerManifestList), string(types.DockerManifestSchema2),
}

// manifest is the manifest of an image, or an index.
type manifest struct {
	Manifests []v1.Descriptor `json:"manifests"`
	Config    json.RawMessage `json:"config"` // a descriptor; for a disk in the image it doesn't matter
	Layers    []v1.Descriptor `json:"layers"`
}

// parseManifest parses a manifest. The type in the registry's response is ignored, because the digest does not cover it. No layer may have
// more than most bytes.
func parseManifest(raw []byte, most int64) (manifest, error) {
	var m manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("%w: its manifest can't be read: %s", ErrUntrusted, shortened(err))
	}
	switch {
	case len(m.Manifests) > 0 && len(m.Layers) > 0:
		return m, fmt.Errorf("%w: its manifest is one of an image and an index of several at once", ErrUntrusted)
	case len(m.Manifests) == 0 && len(m.Layers) == 0:
		return m, fmt.Errorf("%w: its manifest has no layers", ErrUntrusted)
	case len(m.Layers) > maxLayers:
		return m, fmt.Errorf("%w: it has %d layers, and %d are a lot", ErrUntrusted, len(m.Layers), maxLayers)
	}
	for n, layer := range m.Layers {
		if err := checkLayer(layer, most); err != nil {
			return m, fmt.Errorf("%w: layer %d %w", ErrUntrusted, n+1, err)
		}
	}
	return m, nil
}

func checkLayer(l v1.Descriptor, most int64) error {
	switch {
	case len(l.URLs) > 0 || l.MediaType != "" && !l.MediaType.IsDistributable():
		return fmt.Errorf("is to be read from elsewhere than the registry, which is not done. Make an image that has its layers itself")
	case strings.HasSuffix(string(l.MediaType), "+encrypted"):
		return fmt.Errorf("is encrypted")
	case l.Size <= 0 || l.Size > most:
		return fmt.Errorf("claims to have %d bytes", l.Size)
	case hashes[l.Digest.Algorithm] == nil:
		return fmt.Errorf("has a digest of the unknown algorithm %q", l.Digest.Algorithm)
	}
	return nil
}

// choose returns the image for an architecture in an index, or the first one for Linux if arch is empty.
func (m manifest) choose(arch string) (v1.Descriptor, error) {
	var (
		others []string
		chosen *v1.Descriptor
	)
	for n := range m.Manifests {
		d := &m.Manifests[n]
		has := platformOf(*d)
		if has == "" {
			continue // for example a signature
		}
		others = append(others, has)
		if suits(has, arch) && (chosen == nil || has == arch) {
			chosen = d
		}
	}
	if chosen == nil && len(others) == 0 {
		return v1.Descriptor{}, fmt.Errorf("%w: its index has no image for Linux", ErrUntrusted)
	}
	if chosen == nil {
		return v1.Descriptor{}, fmt.Errorf("it has no image for the architecture %s, only for %s", arch, list(others))
	}
	if chosen.Size <= 0 || chosen.Size > maxManifest || hashes[chosen.Digest.Algorithm] == nil {
		return v1.Descriptor{}, fmt.Errorf("%w: its index has a manifest of %d bytes with a digest of %q", ErrUntrusted, chosen.Size,
			chosen.Digest.Algorithm)
	}
	return *chosen, nil
}

// platformOf returns architecture/variant of an image for Linux, and an empty string for other images. The variant v8 of arm64 is omitted:
// it is the only one so far, and most images omit it.
func platformOf(d v1.Descriptor) string {
	p := d.Platform
	switch {
	case p == nil || p.OS != "linux" || p.Architecture == "" || p.Architecture == "unknown":
		return ""
	case p.Variant == "" || p.Architecture == "arm64" && p.Variant == "v8":
		return p.Architecture
	}
	return p.Architecture + "/" + p.Variant
}

// suits reports whether an image is for an architecture; an architecture without a variant matches all of its variants.
func suits(has, wanted string) bool {
	if wanted == "arm64/v8" {
		wanted = "arm64"
	}
	return wanted == "" || has == wanted || strings.HasPrefix(has, wanted+"/")
}

// list formats the first of many names, which come from the registry.
func list(names []string) string {
	more := ""
	if len(names) > 10 {
		names, more = names[:10], " and others"
	}
	text := fmt.Sprintf("%q", names)
	return strings.Trim(strings.ReplaceAll(text, `" "`, `, `), `[]"`) + more
}
