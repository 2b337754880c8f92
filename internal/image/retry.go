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

// maxFailures is the number of consecutive failures after which an operation fails.
const maxFailures = 5

// The pauses between attempts: they double, up to the longest, which also limits Retry-After.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// pause waits; tests replace it.
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

// pauseAfter returns how long to wait after that many failures. It is randomized by a fifth, so that many clients don't retry at once.
func pauseAfter(failures int) time.Duration {
	d := min(firstPause<<(failures-1), longestPause)
	return d - d/10 + rand.N(d/5) //nolint:gosec // a predictable pause is harmless
}

// retryTransport retries requests that a server did not receive, or can't answer now. It returns the last response or error.
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

// repeat returns the same request again, if that is possible.
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

// isRetryable reports whether a retry may succeed: not if a name is unknown or a certificate invalid.
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

// retryAfter returns the server's Retry-After, limited to longestPause.
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
