package image

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// requireTLS refuses requests without TLS, which the library sends to private addresses, and to servers to which a registry redirects or
// refers it: a man in the middle could read a password, or replace an image without a known digest. Loopback connections need none.
type requireTLS struct{ inner http.RoundTripper }

func (r requireTLS) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" && !isLoopback(req.URL.Hostname()) {
		return nil, noTLS{req.URL.Host}
	}
	return r.inner.RoundTrip(req)
}

// noTLS is the error of a server without TLS.
type noTLS struct{ server string }

func (e noTLS) Error() string {
	return fmt.Sprintf("%q has no TLS, so an attacker on the network could read the password, or exchange the image. Give it a "+
		"certificate that this computer trusts. Without a password for its registry, an image that is named by its digest "+
		"(repository@sha256:...) is also read without TLS", e.server)
}

func isLoopback(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// dropErrorBodies removes the bodies of error responses. The library would copy them into errors.
type dropErrorBodies struct{ inner http.RoundTripper }

func (d dropErrorBodies) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := d.inner.RoundTrip(req)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		_, _ = io.CopyN(io.Discard, resp.Body, drained)
		_ = resp.Body.Close()
		resp.Body, resp.ContentLength = http.NoBody, 0
	}
	return resp, err
}

// drained is how many bytes of a body are read so that its connection can be reused.
const drained = 4 << 10

// quiet removes the servers' answers from errors, for a registry that was sent credentials.
type quiet struct{ inner http.RoundTripper }

func (q quiet) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := q.inner.RoundTrip(req)
	if err != nil {
		return nil, withoutAnswer(err)
	}
	if to := resp.Header.Get("Location"); to != "" {
		if _, err := url.Parse(to); err != nil {
			_ = resp.Body.Close()
			return nil, errNoRegistry
		}
	}
	return resp, nil
}

// errNoRegistry is the error of an answer without details.
var errNoRegistry = errors.New("it did not answer as a registry does, or it refers to a server without TLS")

// withoutAnswer returns an error without the servers' answers: a server with the password can repeat it in a form that redaction does not
// find.
func withoutAnswer(err error) error {
	var (
		refused     *transport.Error
		certificate *tls.CertificateVerificationError
		network     *net.OpError
		plain       noTLS
		slow        interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &refused):
		return &transport.Error{StatusCode: refused.StatusCode}
	case errors.As(err, &certificate): // before noTLS, which a second attempt causes
		return certificate
	case errors.As(err, &network):
		return network
	case errors.As(err, &plain):
		return plain
	case errors.Is(err, errStalled), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, http.ErrSchemeMismatch):
		return errors.New("it has no TLS, which passwords need")
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case errors.As(err, &slow) && slow.Timeout():
		return errors.New("it does not answer in time")
	}
	return errNoRegistry
}
