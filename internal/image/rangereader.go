package image

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// rangeReader reads the content of an address, and requests the rest again when a connection breaks off.
type rangeReader struct {
	ctx     context.Context
	client  *http.Client
	address string
	// checked is whether a checksum of the whole decides in the end: then the rest may come from a server with another version of it.
	checked bool
	// accept is the Accept header; empty for any content.
	accept string

	body io.ReadCloser
	// size is in bytes, as announced by the server; negative if it was not.
	size int64
	// version is the server's strong validator of this version of the file; empty if there is none.
	version string
	// refusesRanges is whether a server has refused a range, or has another version.
	refusesRanges bool

	// offset is how many bytes were passed on, and seen is their hash: a server may begin from the start again.
	offset   int64
	seen     maphash.Hash
	failures int
}

// open requests the content from its start.
func (r *rangeReader) open() (*rangeReader, error) {
	r.size = -1
	if err := r.connect(); err != nil {
		return nil, err
	}
	return r, nil
}

// Read passes the content on, and reconnects as long as there is progress.
func (r *rangeReader) Read(p []byte) (int, error) {
	for {
		n, err := r.read(p)
		if n > 0 {
			r.failures = 0
			return n, nil
		}
		if err == nil {
			continue
		}
		var broken retryableError
		if !errors.As(err, &broken) {
			return 0, err
		}
		_ = r.Close()
		if r.ctx.Err() != nil {
			return 0, context.Cause(r.ctx)
		}
		if r.failures++; r.failures == maxFailures {
			return 0, notTheEnd(fmt.Errorf("the download broke off %d times after %d bytes: %w", maxFailures, r.offset, broken.err))
		}
		if err := pause(r.ctx, pauseAfter(r.failures)); err != nil {
			return 0, err
		}
	}
}

// retryableError is an error after which a retry may succeed.
type retryableError struct{ err error }

func (i retryableError) Error() string { return i.err.Error() }

func (r *rangeReader) read(p []byte) (int, error) {
	if r.body == nil {
		if err := r.connect(); errors.Is(err, ErrUntrusted) && !r.checked {
			return 0, err
		} else if err != nil { // a redirect may lead the next request to another server
			return 0, retryableError{err}
		}
	}
	n, err := r.body.Read(p)
	if r.size >= 0 && int64(n) > r.size-r.offset {
		return 0, fmt.Errorf("%w: the server sends more than the %d bytes that it announced", ErrUntrusted, r.size)
	}
	_, _ = r.seen.Write(p[:n])
	r.offset += int64(n)
	switch {
	case n > 0 || err == nil:
		return n, nil // an error is returned again by the next Read
	case !errors.Is(err, io.EOF):
		return 0, retryableError{err}
	case r.size >= 0 && r.offset < r.size:
		return 0, retryableError{io.ErrUnexpectedEOF}
	}
	return 0, io.EOF
}

// Close closes the connection.
func (r *rangeReader) Close() error {
	if r.body == nil {
		return nil
	}
	defer func() { r.body = nil }()
	return r.body.Close()
}

// connect requests the rest of the content. Failed requests to one server were already repeated by retryTransport.
func (r *rangeReader) connect() error {
	req, err := http.NewRequestWithContext(r.ctx, http.MethodGet, r.address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept-Encoding", "identity")
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	ranged := r.offset > 0 && (r.checked || r.version != "") && !r.refusesRanges
	if ranged {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", r.offset))
		if !r.checked {
			req.Header.Set("If-Range", r.version)
		}
	}
	resp, err := r.client.Do(req) //nolint:bodyclose // Close closes it
	if err != nil {
		return r.explain(err)
	}
	r.body = resp.Body
	if err := r.take(resp, ranged); err != nil {
		return errors.Join(err, r.Close())
	}
	return nil
}

func (r *rangeReader) take(resp *http.Response, ranged bool) error {
	switch {
	case resp.StatusCode == http.StatusOK:
		return r.start(resp)
	case resp.StatusCode == http.StatusPartialContent && ranged:
		return r.resume(resp)
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && ranged:
		r.refusesRanges = true
	}
	return refusal{r.address, resp.StatusCode}
}

// start accepts a response from the start, of which a part may have been passed on already.
func (r *rangeReader) start(resp *http.Response) error {
	if r.offset > 0 {
		if r.size >= 0 && resp.ContentLength >= 0 && resp.ContentLength != r.size {
			return r.changed()
		}
		if err := r.skip(); err != nil {
			return err
		}
	}
	if resp.ContentLength >= 0 || r.offset == 0 {
		r.size = resp.ContentLength
	}
	r.version = versionOf(resp.Header)
	return nil
}

// skip reads the part that was passed on already, which must be the same.
func (r *rangeReader) skip() error {
	var again maphash.Hash
	again.SetSeed(r.seen.Seed())
	n, err := io.CopyN(&again, r.body, r.offset)
	switch {
	case n < r.offset && errors.Is(err, io.EOF):
		return r.changed()
	case err != nil:
		return err
	case again.Sum64() != r.seen.Sum64():
		return r.changed()
	}
	return nil
}

func (r *rangeReader) changed() error {
	return fmt.Errorf("%w: it changed while it was read. Try again when whatever writes it is done", ErrUntrusted)
}

// resume accepts a response with the rest.
func (r *rangeReader) resume(resp *http.Response) error {
	var first, last, total int64
	text := resp.Header.Get("Content-Range")
	n, err := fmt.Sscanf(text, "bytes %d-%d/%d", &first, &last, &total)
	if n == 2 && strings.HasSuffix(text, "/*") {
		n, err, total = 3, nil, r.size
	}
	if n != 3 || err != nil || first != r.offset || last < first || total >= 0 && last >= total || r.size >= 0 && total != r.size {
		return fmt.Errorf("%w: the server was asked for the bytes after %d of %d, and answers with the range %q", ErrUntrusted, r.offset,
			r.size, text)
	}
	// A server may support Range but not If-Range. Whether its version has the same content is seen from the start.
	if version := versionOf(resp.Header); !r.checked && version != "" && version != r.version {
		r.refusesRanges = true
		return errors.New("the server has another version")
	}
	r.size = total
	return nil
}

// versionOf returns a validator for If-Range. Weak entity tags are not allowed: they identify content that is only equivalent.
func versionOf(h http.Header) string {
	if tag := h.Get("ETag"); strings.HasPrefix(tag, `"`) {
		return tag
	}
	return h.Get("Last-Modified")
}

// explain removes the address from an error, because redirects lead to signed ones.
func (r *rangeReader) explain(err error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	remedy := ""
	if unreached := (*net.OpError)(nil); errors.As(err, &unreached) {
		remedy = ". The image is read by the computer that runs Terraform: check that it reaches the server (curl -I), and whether it " +
			"needs a proxy (HTTPS_PROXY)"
	}
	return fmt.Errorf("asking for %s: %w%s", r.address, err, remedy)
}

// refusal is the error of a response without the content.
type refusal struct {
	address string
	code    int
}

func (r refusal) Error() string {
	status := fmt.Sprintf("%d %s", r.code, http.StatusText(r.code))
	switch {
	case r.code == http.StatusUnauthorized || r.code == http.StatusForbidden:
		return fmt.Sprintf("%s may not be read: the server answers %s. Check whether one has to log in, and whether a signed URL has run "+
			"out", r.address, status)
	case r.code == http.StatusNotFound || r.code == http.StatusGone:
		return fmt.Sprintf("%s is not there: the server answers %s. Check the address", r.address, status)
	case r.code == http.StatusTooManyRequests || r.code >= 500:
		return fmt.Sprintf("%s can't be read now: the server answers %s, also the %dth time. Try again later", r.address, status,
			maxFailures)
	}
	return fmt.Sprintf("%s can't be read: the server answers %s", r.address, status)
}
