package direct

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// HTTP is a raw image on a web server that supports range requests. It is read-only.
type HTTP struct {
	// URL begins with http:// or https://. Its query is passed on unchanged.
	URL string
	// Insecure disables the verification of an https server's certificate, which the host must trust otherwise. It clears the volume's
	// TLSVerify; TLS is always set for https.
	Insecure bool
}

// Validate checks everything that can be checked offline. It joins one source.Error for each invalid attribute.
func (h HTTP) Validate() error {
	_, err := h.Storage()
	return err
}

// Storage returns the image, without capacity.
func (h HTTP) Storage() (volume.Volume, error) {
	var w fieldErrors
	u, err := parseURL(h.URL)
	w.add("url", err)
	if err == nil && h.Insecure && u.Scheme != "https" {
		w.add("insecure", errors.New("is for https: an http server proves nothing that could be doubted"))
	}
	if err := w.err(); err != nil {
		return volume.Volume{}, err
	}
	server, err := source.ParseServer(u.Host, u.Scheme)
	if err != nil {
		return volume.Volume{}, source.Errorf("url", "%w", err)
	}
	secure := u.Scheme == "https"
	return volume.Volume{Images: []volume.Image{{
		Type: "network", Format: "raw", Protocol: u.Scheme, Name: u.Path, Query: u.RawQuery,
		Servers: []volume.Server{server}, TLS: secure, TLSVerify: secure && !h.Insecure,
	}}}, nil
}

// parseURL accepts URLs that libvirt passes on unchanged: libvirt wants the path decoded, and encodes it again. No error contains the URL,
// which may contain a password.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return nil, errors.New("is no URL of a file; an example is https://images.example.com/debian.raw")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("begins with %q, but only http:// and https:// can be opened", u.Scheme+"://")
	case u.User != nil:
		return nil, errors.New("has a user in it, which would be shown in every plan: serve the image without asking for one")
	case u.Fragment != "":
		return nil, errors.New("has a # in it, and what follows that is never sent to a server: write it as %23")
	case strings.Contains(strings.ToLower(u.EscapedPath()), "%2f"):
		return nil, errors.New("has an encoded slash (%2F) in its path, which libvirt would send as a plain one")
	case strings.ContainsFunc(u.RawQuery, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("has a character after the question mark that must be encoded, such as a space as %20")
	}
	query := u.Query()
	for _, signature := range []string{"X-Amz-Signature", "X-Goog-Signature", "AWSAccessKeyId", "GoogleAccessId"} {
		if query.Has(signature) {
			return nil, fmt.Errorf("is signed for GET alone (%s), and QEMU asks with HEAD first, which the server refuses (403 "+
				"Forbidden): use a virtclaim_disk with source.url, which downloads the image with GET, or a server that needs no signature",
				signature)
		}
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, source.CheckURLPath(u.Path)
}

// Resolve returns the volume, which is read-only. It needs no other system.
func (h HTTP) Resolve(context.Context, source.SecretReader) (source.Resolved, error) {
	found, err := resolved(h.Storage())
	found.ReadOnly = err == nil
	return found, err
}
