package image_test

import (
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// A large limit allows the large layer of a large disk. A small limit does not reduce that of layers, which have other files, too.
func TestManifest_LayerSizeLimit(t *testing.T) {
	const tebibyte = 1 << 40
	for name, c := range map[string]struct {
		limit, size int64
		taken       bool
	}{
		"no limit":                  {0, tebibyte, true},
		"no limit and more":         {0, tebibyte + 2<<30, false},
		"a small limit":             {1 << 20, tebibyte, true},
		"a large limit":             {3 * tebibyte, 3*tebibyte + 1<<20, true},
		"a large limit and more":    {3 * tebibyte, 3*tebibyte + 2<<30, false},
		"a large limit, too little": {2 * tebibyte, 3 * tebibyte, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			f.push(func(m *v1.Manifest) { m.Layers[0].Size = c.size }, tarred(t, plain("disk/d", disk(5000))))
			_, err := pull(t, image.Container{Reference: at(t, f), Limit: c.limit})
			if c.taken { // and refused because it is shorter than declared
				refused(t, err, "has only")
			} else {
				refused(t, err, "layer 1 claims to have")
			}
		})
	}
}
