package volume

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

// copyImage fills the claim with the disk in a container image. It is done already if a former pod has.
func (c Claim) copyImage(ctx context.Context, from image.Container, log func(string)) (f podwire.Filled, err error) {
	digest, err := from.Resolve(ctx)
	if err != nil {
		return f, err
	}
	log("the image is " + digest)
	if is, err := c.inspect(); !c.Overwrite && err == nil && is.State == podwire.IsFilled && is.Filled != nil && is.Digest == digest {
		return *is.Filled, nil
	}
	r, err := from.Open(ctx, digest)
	if err != nil {
		return f, err
	}
	defer func() { _ = r.Close() }()
	var written atomic.Int64
	defer report(log, &written)()
	f, err = c.fill(ctx, r, -1, &written, func() (string, error) { return digest, nil })
	if err != nil && ctx.Err() != nil {
		err = errors.Join(errIncomplete, err)
	}
	return f, err
}
