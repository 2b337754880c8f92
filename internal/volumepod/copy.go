package volumepod

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// copyImage fills the claim with the disk in a container image.
func (c Claim) copyImage(ctx context.Context, from image.Container, log func(string)) (f Filled, err error) {
	digest, err := from.Resolve(ctx)
	if err != nil {
		return f, err
	}
	log("the image is " + digest)
	r, err := from.Open(ctx, digest)
	if err != nil {
		return f, err
	}
	defer func() { _ = r.Close() }()
	var written atomic.Int64
	defer report(log, &written)()
	if f, err = c.fill(ctx, r, -1, &written); err != nil {
		if ctx.Err() != nil {
			err = errors.Join(errHalf, err)
		}
		return f, err
	}
	f.Digest = digest
	return f, record(c.Path, f)
}
