package host

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
)

// tlsPort is libvirtd's default port for TLS.
const tlsPort = "16514"

// pki has the paths of the files of a TLS client.
type pki struct{ authority, certificate, key string }

// pkis are the locations that libvirt searches, in its order: each file is read from the first location that has it.
func pkis(uri *url.URL) []pki {
	if dir := uri.Query().Get("pkipath"); dir != "" {
		return []pki{pkiIn(dir)}
	}
	found := []pki{{"/etc/pki/CA/cacert.pem", "/etc/pki/libvirt/clientcert.pem", "/etc/pki/libvirt/private/clientkey.pem"}}
	if home, err := os.UserHomeDir(); err == nil {
		found = append([]pki{pkiIn(filepath.Join(home, ".pki", "libvirt"))}, found...)
	}
	return found
}

func pkiIn(dir string) pki {
	return pki{filepath.Join(dir, "cacert.pem"), filepath.Join(dir, "clientcert.pem"), filepath.Join(dir, "clientkey.pem")}
}

func connectTLS(ctx context.Context, uri *url.URL) (net.Conn, error) {
	config, err := tlsConfig(uri)
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(uri.Hostname(), cmp.Or(uri.Port(), tlsPort))
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := admitted(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// admitted waits for the byte with which libvirtd accepts the client.
func admitted(conn net.Conn) error {
	answer := make([]byte, 1)
	_, err := io.ReadFull(conn, answer)
	if err == nil && answer[0] != 1 {
		err = errors.New("it said no")
	}
	if err != nil {
		return fmt.Errorf("libvirtd does not admit this client's certificate: %w", err)
	}
	return nil
}

// tlsConfig verifies the server with the authority in cacert.pem, or with the system's if there is no such file. Without a client
// certificate none is sent: libvirtd decides whether it accepts that.
func tlsConfig(uri *url.URL) (*tls.Config, error) {
	config := &tls.Config{ServerName: uri.Hostname(), InsecureSkipVerify: isUnverified(uri)} //nolint:gosec // only if the URI says so
	places := pkis(uri)
	for _, place := range places {
		text, err := os.ReadFile(place.authority)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate in it", place.authority)
		}
		break
	}
	for _, place := range places {
		certificate, err := tls.LoadX509KeyPair(place.certificate, place.key)
		if errors.Is(err, fs.ErrNotExist) {
			if _, alone := os.Stat(place.certificate); alone == nil {
				return nil, fmt.Errorf("%s has no key: %w", place.certificate, err)
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place.certificate, err)
		}
		config.Certificates = []tls.Certificate{certificate}
		break
	}
	return config, nil
}
