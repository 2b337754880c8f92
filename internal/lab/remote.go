package lab

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// remoteHost is the name of the lab's host behind a network.
const remoteHost = "host-d"

// listening has libvirtd listen at the standard ports, for any client that reaches the host (tcp) and for clients with a certificate of the
// right authority (tls). Its files are in a folder.
const listening = `listen_tcp = 1
auth_tcp = "none"
listen_tls = 1
ca_file = "%[1]s/cacert.pem"
cert_file = "%[1]s/servercert.pem"
key_file = "%[1]s/serverkey.pem"
`

// Remote is a host that is reached over a network, which only this machine is on: by libvirtd's own ports, and by ssh. Its URI is that of
// its socket, like the other hosts'.
type Remote struct {
	*Host
	// Address is the address of libvirtd's ports, 16509 for tcp and 16514 for tls.
	Address string
	// PKI has the files of a client for tls, in the layout of libvirt's pkipath; Stranger those of a client with a certificate of another
	// authority.
	PKI, Stranger string
	// SSH is for clients of ssh.
	SSH SSH

	network *network
}

// Remote returns host-d, which the first call starts.
func (l *Lab) Remote(ctx context.Context) (*Remote, error) {
	return l.remote.get(ctx, func(ctx context.Context) (*Remote, error) {
		dir, err := l.serverFolder(remoteHost)
		if err != nil {
			return nil, err
		}
		r := &Remote{Host: newHost(dir, remoteHost, l.Guest), PKI: filepath.Join(dir, "pki"), Stranger: filepath.Join(dir, "stranger")}
		r.libvirtd = fmt.Sprintf(listening, r.PKI)
		r.prepare = r.connectNetwork
		r.SSH = newSSH(filepath.Join(dir, "ssh"))
		if err := r.run(ctx, l.Dir, bind{filepath.Join(dir, "run-sshd"), "/run/sshd"}); err != nil {
			return r, err
		}
		return r, r.startSSH(ctx)
	})
}

func (r *Remote) connectNetwork(ctx context.Context) (err error) {
	home := filepath.Join(r.Dir, "network")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	if r.network, err = newNetwork(ctx, r.sandbox, home); err != nil {
		return err
	}
	r.Address, r.within, r.options = r.network.Address, r.network.enter(""), " --listen"
	return errors.Join(r.writePKI(r.PKI), r.writePKI(r.Stranger))
}

// writePKI creates an authority, and certificates for the server and for a client.
func (r *Remote) writePKI(dir string) error {
	ca, err := newAuthority("the authority of host-d")
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	usage := x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "cacert.pem"), ca.pem(), 0o600),
		ca.issue(dir, "server", &x509.Certificate{
			Subject: pkix.Name{CommonName: remoteHost}, IPAddresses: []net.IP{net.ParseIP(r.Address)},
			KeyUsage: usage, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}),
		ca.issue(dir, "client", &x509.Certificate{
			Subject: pkix.Name{CommonName: "a client"}, KeyUsage: usage, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}))
}

// issue writes a certificate and its key into files with libvirt's names.
func (a *authority) issue(dir, name string, template *x509.Certificate) error {
	certificate, key, err := a.sign(template)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		writePEM(filepath.Join(dir, name+"cert.pem"), "CERTIFICATE", certificate.Raw),
		writePEM(filepath.Join(dir, name+"key.pem"), "PRIVATE KEY", der))
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func (r *Remote) close(ctx context.Context) error {
	if r == nil {
		return nil
	}
	return r.Host.close(ctx)
}
