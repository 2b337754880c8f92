package image

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

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
		"computer trusts. An image that is named by its digest (repository@sha256:...) is also read without TLS, if no user name and password are set "+
		"for its registry", e.server)
}

func isLoopback(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || ip != nil && ip.IsLoopback()
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

// withoutAnswer is an error of a login without what the servers answered: one that was given a password can repeat it in a form that no redaction
// knows.
func withoutAnswer(err error) error {
	var (
		refused     *transport.Error
		plain       noTLS
		network     *net.OpError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &refused):
		return &transport.Error{StatusCode: refused.StatusCode}
	case errors.As(err, &plain):
		return plain
	case errors.As(err, &network):
		return network
	case errors.As(err, &certificate):
		return certificate
	case errors.Is(err, errStalled), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return errors.New("its answer to the login is not that of a registry")
}
