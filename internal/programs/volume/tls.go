package volume

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// certificates are the files of the server's certificate and of the clients' authority, all of which may be empty.
type certificates struct{ cert, key, clientCA string }

// access is who may send requests, and what shows them the server.
type access struct {
	certificates
	tokenFile string
}

// flags are those of commands that take requests; tokenFile is a default.
func (a *access) flags(set *flag.FlagSet, tokenFile string) {
	set.StringVar(&a.tokenFile, "token-file", tokenFile, "the file of the token that requests must have")
	set.StringVar(&a.clientCA, "client-ca", "", "the file of the authority of client certificates, which are taken instead of a token")
	set.StringVar(&a.cert, "tls-cert", "", "the file of the server's certificate; without it, one is made")
	set.StringVar(&a.key, "tls-key", "", "the file of its key")
}

// open reads the files. what could anyone do without them?
func (a access) open(what string) (token string, config *tls.Config, pin string, err error) {
	if a.tokenFile == "" && a.clientCA == "" {
		return "", nil, "", errors.New("anyone could " + what + ": give -token-file or -client-ca")
	}
	if (a.cert == "") != (a.key == "") {
		return "", nil, "", errors.New("-tls-cert and -tls-key go together")
	}
	if token, err = readToken(a.tokenFile); err == nil {
		config, pin, err = a.config()
	}
	return token, config, pin, err
}

// lifetime is that of a self-made certificate: its pod is to fill one volume.
const lifetime = 365 * 24 * time.Hour

// config is a configuration of TLS. pin is what curl takes for a certificate that no authority has signed (--pinnedpubkey).
func (c certificates) config() (config *tls.Config, pin string, err error) {
	var certificate tls.Certificate
	if c.cert == "" {
		certificate, err = selfMade()
	} else {
		certificate, err = tls.LoadX509KeyPair(c.cert, c.key)
	}
	if err != nil {
		return nil, "", fmt.Errorf("the server's certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		return nil, "", fmt.Errorf("the server's certificate: %w", err)
	}
	sum := sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
	config = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	if c.clientCA != "" {
		text, err := os.ReadFile(c.clientCA)
		if err != nil {
			return nil, "", err
		}
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
		if !config.ClientCAs.AppendCertsFromPEM(text) {
			return nil, "", errors.New("there is no certificate in " + c.clientCA)
		}
	}
	return config, "sha256//" + base64.StdEncoding.EncodeToString(sum[:]), nil
}

func selfMade() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, err
	}
	host, err := os.Hostname()
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: host}, DNSNames: []string{
			host,
			"localhost",
		}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
