package image

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

// maxFailures is how often in a row something fails before it is given up.
const maxFailures = 5

// The pauses between attempts: they double, up to the longest, which is also what a server may ask for.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// pause waits; tests have less time.
var pause = func(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pauseAfter is how long to wait after so many failures, at random by a fifth so that many don't come back at once.
func pauseAfter(failures int) time.Duration {
	d := min(firstPause<<(failures-1), longestPause)
	return d - d/10 + rand.N(d/5) //nolint:gosec // nobody gains by guessing it
}

// retryTransport asks again where a server can't be reached, or can't answer now. What it answers at last is passed on.
type retryTransport struct{ inner http.RoundTripper }

func (p retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	for failures := 1; ; failures++ {
		resp, err := p.inner.RoundTrip(req)
		if failures == maxFailures || !isRetryable(req.Context(), resp, err) {
			return resp, err
		}
		again, ok := repeat(req)
		if !ok {
			return resp, err
		}
		d := pauseAfter(failures)
		if resp != nil {
			d = max(d, retryAfter(resp))
			_, _ = io.CopyN(io.Discard, resp.Body, drained)
			_ = resp.Body.Close()
		}
		if err := pause(req.Context(), d); err != nil {
			return nil, err
		}
		req = again
	}
}

// repeat is the same request once more, if that is possible.
func repeat(req *http.Request) (*http.Request, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	again := req.Clone(req.Context())
	again.Body = body
	return again, true
}

// isRetryable tells whether another attempt could end otherwise: not if a name is unknown or a certificate wrong.
func isRetryable(ctx context.Context, resp *http.Response, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if err == nil {
		code := resp.StatusCode
		return code == http.StatusTooManyRequests || code == http.StatusRequestTimeout ||
			code >= 500 && code != http.StatusNotImplemented && code != http.StatusHTTPVersionNotSupported
	}
	var (
		name        *net.DNSError
		certificate *tls.CertificateVerificationError
		alert       tls.AlertError
		record      tls.RecordHeaderError
	)
	if errors.As(err, &name) {
		return !name.IsNotFound
	}
	return !errors.As(err, &certificate) && !errors.As(err, &alert) && !errors.As(err, &record)
}

// retryAfter is what the server asks for, within reason.
func retryAfter(resp *http.Response) time.Duration {
	text := resp.Header.Get("Retry-After")
	var d time.Duration
	if seconds, err := strconv.Atoi(text); err == nil {
		d = time.Duration(min(seconds, 1<<20)) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = time.Until(at)
	}
	return min(max(d, 0), longestPause)
}
