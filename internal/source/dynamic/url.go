package dynamic

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// URL is a server that is reached by its address.
type URL struct {
	// Address ends with the path of the requests.
	Address string
	// CA are the certificates of the authorities that the server's must be signed by, PEM; those of the machine if empty.
	CA []byte
	// Certificate and Key are the client's, PEM; empty if it has none.
	Certificate, Key []byte
	// Token is empty if there is none.
	Token string
}

// CheckURL checks an address.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%.300q is no URL; an example is https://volumes.example.com/volume", address)
	case u.User != nil:
		return errors.New("a URL is stored in state: put the password in a Secret and name it in secret_ref")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("the query of a request has the parameters: set them in parameters")
	}
	return nil
}

// IsEncrypted reports whether requests to the address go over TLS.
func IsEncrypted(address string) bool { return strings.HasPrefix(strings.ToLower(address), "https:") }

// ReadSecret reads the token, or the client's certificate, or both.
func (u *URL) ReadSecret(ctx context.Context, r source.SecretReader, ref source.SecretRef) error {
	s, err := r.Secret(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return err
	}
	u.Token = strings.TrimSpace(string(s.Data[tokenKey]))
	u.Certificate, u.Key = s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]
	if u.Token == "" && len(u.Certificate) == 0 {
		return fmt.Errorf("the Secret %s has neither a token under the key %s nor a client certificate under %s and %s", ref, tokenKey,
			corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return nil
}

// Server is the server at the URL.
func (u URL) Server(key, namespace string) (Server, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(u.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(u.CA) {
			return Server{}, errors.New("there is no certificate in ca_certificate: it has to be in PEM")
		}
	}
	if len(u.Certificate) > 0 {
		pair, err := tls.X509KeyPair(u.Certificate, u.Key)
		if err != nil {
			return Server{}, fmt.Errorf("the client's certificate and key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.DisableKeepAlives = config, true
	client := &http.Client{
		Transport: transport,
		// A redirect would get the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s := Server{Name: u.Address, Key: key, Namespace: namespace, Header: http.Header{}}
	if u.Token != "" {
		s.Header.Set("Authorization", bearer+u.Token)
	}
	s.Call = func(ctx context.Context, method string, query url.Values, header http.Header) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, method, u.Address, http.NoBody)
		if err != nil {
			return nil, err
		}
		req.URL.RawQuery, req.Header = query.Encode(), header
		return client.Do(req)
	}
	return s, nil
}
