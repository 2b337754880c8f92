package host

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// On a host with modular daemons the socket of virtqemud is used; on one with only virtproxyd or libvirtd, theirs.
func TestDial_FirstExistingSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "run") // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	session := parse(t, "qemu:///session")
	if _, err := connect(t.Context(), session); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir+"/libvirt/libvirt-sock") {
		t.Errorf("got %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "libvirt"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"libvirt-sock", "virtqemud-sock"} {
		path := filepath.Join(dir, "libvirt", name)
		l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		conn, err := connect(t.Context(), session)
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.RemoteAddr().String(); got != path {
			t.Errorf("it is %s, not %s", got, path)
		}
		_ = conn.Close()
	}
}

func TestDial_ClosedPortFailsAtOnce(t *testing.T) {
	for _, uri := range []string{"qemu+tcp://127.0.0.1:1/system", "qemu://127.0.0.1:1/system"} {
		if _, err := connect(t.Context(), parse(t, uri)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// tlsServer starts a server with a certificate for 127.0.0.1 only, which answers each client with a byte. pkipath contains its
// authority.
func tlsServer(t *testing.T, answer byte) (port, pkipath string) {
	t.Helper()
	web := httptest.NewTLSServer(nil)
	certificates := web.TLS.Certificates
	pkipath = t.TempDir()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	web.Close()
	if err := os.WriteFile(filepath.Join(pkipath, "cacert.pem"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte{answer}) // a client that does not trust the server has closed the connection
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, "pkipath=" + url.QueryEscape(pkipath)
}

func TestDial_TLSVerification(t *testing.T) {
	port, pkipath := tlsServer(t, 1)
	other := "pkipath=" + url.QueryEscape(t.TempDir())
	for uri, want := range map[string]any{
		"qemu+tls://127.0.0.1:" + port + "/system?" + pkipath:             nil,
		"qemu+tls://localhost:" + port + "/system?" + pkipath:             &x509.HostnameError{},
		"qemu+tls://localhost:" + port + "/system?no_verify=1&" + pkipath: nil,
		"qemu+tls://127.0.0.1:" + port + "/system?" + other:               &x509.UnknownAuthorityError{},
		"qemu+tls://127.0.0.1:" + port + "/system?no_verify=1&" + other:   nil,
		"qemu+tls://127.0.0.1:" + port + "/system?no_verify=0&" + other:   &x509.UnknownAuthorityError{},
	} {
		conn, err := connect(t.Context(), parse(t, uri))
		switch want := want.(type) {
		case nil:
			if err != nil {
				t.Errorf("%s: %v", uri, err)
				continue
			}
			_ = conn.Close()
		case *x509.HostnameError:
			if !errors.As(err, want) {
				t.Errorf("%s: %v", uri, err)
			}
		case *x509.UnknownAuthorityError:
			if !errors.As(err, want) {
				t.Errorf("%s: %v", uri, err)
			}
		}
	}
}

func TestDial_TLSRefusedByServer(t *testing.T) {
	port, pkipath := tlsServer(t, 0)
	_, err := connect(t.Context(), parse(t, "qemu+tls://127.0.0.1:"+port+"/system?"+pkipath))
	if err == nil || !strings.Contains(err.Error(), "does not admit this client's certificate") {
		t.Errorf("got %v", err)
	}
}

func TestDial_InvalidTLSFiles(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"cacert.pem has no certificate in it": {"cacert.pem": "nothing"},
		"clientcert.pem has no key":           {"clientcert.pem": "a certificate"},
		"failed to find any PEM data":         {"clientcert.pem": "nothing", "clientkey.pem": "nothing"},
	} {
		dir := t.TempDir()
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := tlsConfig(parse(t, "qemu+tls://node-a/system?pkipath="+url.QueryEscape(dir)))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The configured time is that of calls, events and streams, and of ssh.
func TestRegistry_ConnectTimeout(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "silent")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	uri := "qemu+unix:///system?socket=" + socket
	h, err := NewRegistry(map[string]Config{"slow": {URI: uri, ConnectTimeout: 50 * time.Millisecond}, "usual": {URI: uri}}).Host("slow")
	if err != nil {
		t.Fatal(err)
	}
	_, pinged := h.Domains(t.Context())
	_, _, _, listening := h.events.listen(t.Context(), "id")
	for name, err := range map[string]error{"calls": pinged, "events": listening} {
		if err == nil || !strings.Contains(err.Error(), "no answer within 50ms (connect_timeout of the host)") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	if args := sshArguments(parse(t, "qemu+ssh://h/system"), timeFor(ctx)); !slices.Contains(args, "ConnectTimeout=40") {
		t.Errorf("ssh has %q", args)
	}
}

func TestDial_SilentHostTimesOut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	_, err := dial(ctx, asSSH(t, "exec sleep 60"), dialTimeout, nil)
	if !unreachable(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
