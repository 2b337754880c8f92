package volume

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// issue makes an authority, and a client's certificate that it has signed.
func issue(t *testing.T) (authority []byte, client tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	authority, err = x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return authority, tls.Certificate{Certificate: [][]byte{authority}, PrivateKey: key}
}

// A client certificate of the authority is taken instead of a token, and none of another.
func TestUpload_ClientCertificate(t *testing.T) {
	ca, ours := issue(t)
	_, others := issue(t)
	authority := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca}), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startPod(t.Context(), t, "-client-ca", authority)
	ask := func(with ...tls.Certificate) (int, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: with}}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.url+"/volume", bytes.NewReader(disk(2)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	if status, err := ask(); status != http.StatusUnauthorized {
		t.Errorf("without a certificate: %d, %v", status, err)
	}
	if status, err := ask(others); err == nil {
		t.Errorf("with the certificate of another authority: %d", status)
	}
	if status, err := ask(ours); status != http.StatusCreated {
		t.Errorf("with a certificate: %d, %v", status, err)
	}
}
