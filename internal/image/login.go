package image

import (
	"fmt"
	"net"
	"net/http"
)

// encrypted refuses requests to a registry without TLS, which the library makes to private addresses: anybody in between could read a password, and
// exchange an image of which no digest is known. Connections within the computer are not protected.
type encrypted struct {
	inner    http.RoundTripper
	registry string
}

func (e encrypted) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" && req.URL.Host == e.registry && !isLoopback(req.URL.Hostname()) {
		return nil, fmt.Errorf("%s is not asked without TLS: anybody in between could read the password, or exchange the image. Give it a certificate "+
			"that this computer trusts. An image that is named by its digest (repository@sha256:...) is also read without TLS, if no user name and "+
			"password are set for its registry", e.registry)
	}
	return e.inner.RoundTrip(req)
}

// silent drops what a server says when it refuses: the library puts it into errors, and a server that was given a password can repeat that in
// any form.
type silent struct{ inner http.RoundTripper }

func (s silent) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := s.inner.RoundTrip(req)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		_ = resp.Body.Close()
		resp.Body, resp.ContentLength = http.NoBody, 0
	}
	return resp, err
}

func isLoopback(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}
