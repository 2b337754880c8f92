package direct

import (
	"context"
	"errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// NBD is an export of an NBD server, which is reached by either Server or Socket.
type NBD struct {
	// Server is host or host:port; the port defaults to 10809, and IPv6 addresses are in brackets.
	Server string
	// Socket is the path of the server's socket on each host.
	Socket string
	// Export is the name of the export; empty is the server's default one.
	Export string
	// TLS encrypts the connection and verifies the server, with the certificates of each host's libvirt for NBD (nbd_tls_x509_cert_dir in
	// its qemu.conf): QEMU's NBD client can't skip the verification.
	TLS bool
}

// Validate checks everything that can be checked offline. It joins one source.Error for each invalid attribute.
func (n NBD) Validate() error {
	_, err := n.Storage()
	return err
}

// Storage returns the export, without capacity.
func (n NBD) Storage() (volume.Volume, error) {
	var w fieldErrors
	server := n.server(&w)
	w.add("export", source.CheckExport(n.Export))
	if err := w.err(); err != nil {
		return volume.Volume{}, err
	}
	return volume.Volume{Images: []volume.Image{{
		Type: "network", Format: "raw", Protocol: "nbd", Name: n.Export, Servers: []volume.Server{server}, TLS: n.TLS, TLSVerify: n.TLS,
	}}}, nil
}

func (n NBD) server(w *fieldErrors) volume.Server {
	switch {
	case n.Server == "" && n.Socket == "":
		w.add("server", errors.New("is missing: name the server as host or host:port, or else its socket"))
	case n.Server != "" && n.Socket != "":
		w.add("socket", errors.New("conflicts with server: a server is reached by one of them"))
	case n.Server != "":
		server, err := source.ParseServer(n.Server, "nbd")
		w.add("server", err)
		return server
	case n.TLS:
		w.add("tls", errors.New("is for a server on the network: what goes over a socket does not leave the host"))
	default:
		path, err := source.FilePath(n.Socket)
		w.add("socket", err)
		return volume.Server{Transport: "unix", Socket: path}
	}
	return volume.Server{}
}

// Resolve returns the volume. It needs no other system.
func (n NBD) Resolve(context.Context, source.SecretReader) (source.Resolved, error) {
	return resolved(n.Storage())
}
