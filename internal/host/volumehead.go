package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/digitalocean/go-libvirt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host/stream"
)

// VolumeHead reads the first n bytes of a volume's file, or all of a shorter one, whatever its format is.
func (h *Host) VolumeHead(ctx context.Context, pool, name string, n uint64) ([]byte, error) {
	return h.VolumePart(ctx, pool, name, 0, int64(n))
}

// VolumePart reads n bytes of a volume's file, or those that it has behind an offset.
func (h *Host) VolumePart(ctx context.Context, pool, name string, offset, n int64) ([]byte, error) {
	var part bytes.Buffer
	err := h.withHead(ctx, "read volume", pool, name, func(c *stream.Conn, v libvirt.StorageVol) error {
		part.Reset()
		return c.Download(&part, v, offset, n)
	})
	return part.Bytes(), err
}

// VolumeDigest is the digest of all of a volume's file, as sha256:hex.
func (h *Host) VolumeDigest(ctx context.Context, pool, name string) (digest string, err error) {
	err = h.withHead(ctx, "read volume", pool, name, func(c *stream.Conn, v libvirt.StorageVol) error {
		sum := sha256.New()
		err := c.Download(sum, v, 0, 0)
		digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
		return err
	})
	return digest, err
}

// HasLength reports whether the file of a volume has that many bytes. It also works if libvirt can't describe the volume.
func (h *Host) HasLength(ctx context.Context, pool, name string, bytes int64) (bool, error) {
	length := 0
	err := h.withHead(ctx, "read the end of volume", pool, name, func(c *stream.Conn, v libvirt.StorageVol) error {
		var end strings.Builder
		err := c.Download(&end, v, bytes-1, 2)
		length = end.Len()
		return err
	})
	return length == 1, err
}

// WriteVolumeHead replaces the first bytes of a volume that is not open anywhere, and reads them back, because libvirt confirms uploads
// whose last writes have failed.
func (h *Host) WriteVolumeHead(ctx context.Context, pool, name string, head []byte) error {
	return h.withHead(ctx, "write the head of volume", pool, name, func(c *stream.Conn, v libvirt.StorageVol) error {
		to, err := c.Upload(v, 0, false)
		if err != nil {
			return err
		}
		if _, err := to.Write(head); err != nil {
			return err
		}
		if err := to.Finish(); err != nil {
			return err
		}
		return readsBack(c, v, head)
	})
}

// readsBack is ErrTorn if a volume does not begin with the written bytes.
func readsBack(c *stream.Conn, v libvirt.StorageVol, head []byte) error {
	var back bytes.Buffer
	if err := c.Download(&back, v, 0, int64(len(head))); err != nil {
		return err
	}
	if !bytes.Equal(back.Bytes(), head) {
		return fmt.Errorf("%w: its first %d bytes are others", ErrTorn, len(head))
	}
	return nil
}

// IsUnfinished reports whether a volume begins with the marker of an incomplete Upload.
func (h *Host) IsUnfinished(ctx context.Context, pool, name string) (bool, error) {
	const few = 64
	head, err := h.VolumeHead(ctx, pool, name, few)
	return err == nil && bytes.HasPrefix(unfinished, head), err
}

// withHead calls f with a volume and a connection for transfers, which is kept for the next header: headers are read one after the other,
// and connecting takes longer than reading. A kept connection may have ended meanwhile; then f is called again.
func (h *Host) withHead(ctx context.Context, op, pool, name string, f func(*stream.Conn, libvirt.StorageVol) error) error {
	v := libvirt.StorageVol{Pool: pool, Name: name}
	op = fmt.Sprintf("%s %s in storage pool %s", op, name, pool)
	for {
		kept, err := h.heads.take(ctx)
		if err != nil {
			return h.failed(op, err)
		}
		wasKept := kept != nil
		if !wasKept {
			if kept, err = h.openKept(ctx); err != nil {
				h.heads.give(nil)
				return h.failed(op, err)
			}
		}
		err = kept.use(ctx, func(c *stream.Conn) error { return f(c, v) })
		if err == nil {
			h.heads.give(kept)
			return nil
		}
		kept.close()
		h.heads.give(nil)
		isLost := errors.Is(err, libvirt.ErrInterrupted) || errors.Is(err, stream.ErrStalled) || errors.Is(err, context.Canceled)
		if !wasKept || !isLost || ctx.Err() != nil {
			return h.failed(op, err)
		}
	}
}

// keptStream is a connection for transfers that is reused.
type keptStream struct {
	*stream.Conn
	end context.CancelCauseFunc
}

func (h *Host) openKept(ctx context.Context) (*keptStream, error) {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	defer stop()
	c, err := h.openStream(life)
	if err != nil {
		end(nil)
		return nil, err
	}
	return &keptStream{c, end}, nil
}

// use calls f, and closes the connection if ctx ends before f.
func (k *keptStream) use(ctx context.Context, f func(*stream.Conn) error) error {
	stop := context.AfterFunc(ctx, func() { k.end(context.Cause(ctx)) })
	defer stop()
	return f(k.Conn)
}

func (k *keptStream) close() {
	_ = k.Close()
	k.end(nil)
}

// oneStream has the one kept connection, with one user at a time.
type oneStream struct {
	once sync.Once
	slot chan *keptStream
}

func (s *oneStream) slots() chan *keptStream {
	s.once.Do(func() {
		s.slot = make(chan *keptStream, 1)
		s.slot <- nil
	})
	return s.slot
}

// take returns the connection, and removes it here; nil if there is none.
func (s *oneStream) take(ctx context.Context) (*keptStream, error) {
	select {
	case k := <-s.slots():
		return k, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *oneStream) give(k *keptStream) { s.slots() <- k }

// close closes the connection, unless it is in use: then it ends with the process.
func (s *oneStream) close() {
	select {
	case k := <-s.slots():
		if k != nil {
			k.close()
		}
		s.give(nil)
	default:
	}
}
