package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// credentials are the paths of this control plane's keys, and its users.
type credentials struct {
	ca, server, admin, serviceAccount keyPair
	// tokenFile is in kube-apiserver's CSV format and has the reader's token.
	tokenFile   string
	readerToken string
}

// keyPair are the paths of a PEM certificate and its private key.
type keyPair struct{ cert, key string }

// loadCredentials reads the credentials in dir, and creates missing ones.
func loadCredentials(dir string) (credentials, error) {
	creds := credentials{
		ca:             pairIn(dir, "ca"),
		server:         pairIn(dir, "server"),
		admin:          pairIn(dir, "admin"),
		serviceAccount: pairIn(dir, "service-account"),
		tokenFile:      filepath.Join(dir, "tokens.csv"),
	}
	ca, err := ensurePair(creds.ca, &x509.Certificate{
		Subject:  pkix.Name{CommonName: "virtclaim lab"},
		IsCA:     true,
		KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		return credentials{}, err
	}
	leaves := map[keyPair]*x509.Certificate{
		creds.server: {
			Subject:     pkix.Name{CommonName: "kube-apiserver"},
			DNSNames:    []string{"localhost"},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		},
		creds.admin: {
			Subject:     pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		},
		creds.serviceAccount: {Subject: pkix.Name{CommonName: "service accounts"}},
	}
	for pair, template := range leaves {
		template.KeyUsage = x509.KeyUsageDigitalSignature
		if _, err := ensurePair(pair, template, ca); err != nil {
			return credentials{}, err
		}
	}
	creds.readerToken, err = ensureToken(creds.tokenFile)
	return creds, err
}

func pairIn(dir, name string) keyPair {
	return keyPair{cert: filepath.Join(dir, name+".crt"), key: filepath.Join(dir, name+".key")}
}

// ensurePair loads the pair, or creates it from template, signed by parent
// (nil: by itself).
func ensurePair(pair keyPair, template *x509.Certificate, parent *tls.Certificate) (*tls.Certificate, error) {
	loaded, err := tls.LoadX509KeyPair(pair.cert, pair.key)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makePair(pair, template, parent); err != nil {
			return nil, fmt.Errorf("make certificate %s: %w", pair.cert, err)
		}
		loaded, err = tls.LoadX509KeyPair(pair.cert, pair.key)
	}
	if err != nil {
		return nil, fmt.Errorf("load certificate %s: %w", pair.cert, err)
	}
	return &loaded, nil
}

func makePair(pair keyPair, template *x509.Certificate, parent *tls.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return err
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().AddDate(10, 0, 0)
	template.BasicConstraintsValid = true

	issuer, issuerKey := template, any(key)
	if parent != nil {
		issuer, issuerKey = parent.Leaf, parent.PrivateKey
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, issuerKey)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writeSecret(pair.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})); err != nil {
		return err
	}
	return writeSecret(pair.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
}

// writeSecret replaces a file atomically: a kill in between leaves no partial
// file.
func writeSecret(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
