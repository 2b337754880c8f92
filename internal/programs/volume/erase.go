package volume

import (
	"context"
	"errors"
	"sync/atomic"
)

// eraseStep is how many bytes are erased at once.
const eraseStep = 256 * mebiByte

// erase has the claim read as zeros, and returns its size. Until all does, the volume is marked as incomplete. written counts what is done
// in bytes.
func (c Claim) erase(ctx context.Context, written *atomic.Int64) (size int64, err error) {
	v, err := openVolume(c.Path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if err := v.checkUnused(); err != nil && !errors.Is(err, ErrFilled) {
		return 0, err
	}
	if err := removeRecord(c.Path); err != nil {
		return 0, err
	}
	if err := v.begin(); err != nil {
		return 0, err
	}
	for at := int64(sector); at < v.size; {
		if ctx.Err() != nil {
			return 0, errors.Join(errIncomplete, context.Cause(ctx))
		}
		next := min(v.size, (at/eraseStep+1)*eraseStep)
		if err := v.zero(at, next-at); err != nil { // begin has blanked a file
			return 0, err
		}
		at = next
		written.Store(at)
	}
	if err := v.finish(nil, v.size); err != nil || v.isDevice {
		return v.size, err
	}
	return v.size, v.Truncate(v.size) // finish writes whole sectors
}
