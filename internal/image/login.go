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

// requireTLS refuses requests without TLS, which the library makes to private addresses, and to servers that a registry redirects or refers it to:
// anybody on the network path could read a password, or exchange an image of which no digest is known. Connections within the computer need none.
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
	return fmt.Sprintf("%q has no TLS, so anybody on the network path could read the password, or exchange the image. Give it a certificate that this "+
		"computer trusts. An image that is named by its digest (repository@sha256:...) is also read without TLS, if neither the configuration nor docker "+
		"login has a password for its registry", e.server)
}

func isLoopback(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// dropErrorBodies drops what a server says when it refuses. The library puts that into errors.
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

// drained is how many bytes of a body are read so that its connection can be used again.
const drained = 4 << 10

// quiet removes from errors what the servers answered, for a registry that was sent credentials.
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

// errNoRegistry is the error of an answer of which nothing more is said.
var errNoRegistry = errors.New("it did not answer as a registry does, or it refers to a server without TLS")

// withoutAnswer is an error without what the servers answered: one that was given a password can repeat it in a form that no redaction knows.
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
	case errors.As(err, &certificate): // before noTLS, which comes of a second attempt
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
