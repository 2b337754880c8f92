package host

import (
	"fmt"
	"net/url"
	"os/user"
	"strings"

	"github.com/digitalocean/go-libvirt/socket"
	"github.com/digitalocean/go-libvirt/socket/dialers"
)

// dialer is the way to the libvirtd of a URI (https://libvirt.org/uri.html). go-libvirt keeps its own to itself, and a
// connection for a stream is not one of its.
func dialer(uri *url.URL) (socket.Dialer, error) {
	_, transport, _ := strings.Cut(uri.Scheme, "+")
	if transport == "" && uri.Host != "" {
		transport = "tls" // libvirt's own default
	}
	switch transport {
	case "", "unix":
		return localDialer(uri), nil
	case "tcp":
		return remoteDialer(uri), nil
	case "tls":
		return tlsDialer(uri), nil
	}
	return sshDialer(uri, transport)
}

func localDialer(uri *url.URL) socket.Dialer {
	var options []dialers.LocalOption
	if path := uri.Query().Get("socket"); path != "" {
		options = append(options, dialers.WithSocket(path))
	}
	return dialers.NewLocal(options...)
}

func remoteDialer(uri *url.URL) socket.Dialer {
	var options []dialers.RemoteOption
	if port := uri.Port(); port != "" {
		options = append(options, dialers.UsePort(port))
	}
	return dialers.NewRemote(uri.Hostname(), options...)
}

func tlsDialer(uri *url.URL) socket.Dialer {
	var options []dialers.TLSOption
	if port := uri.Port(); port != "" {
		options = append(options, dialers.UseTLSPort(port))
	}
	if path := uri.Query().Get("pkipath"); path != "" {
		options = append(options, dialers.UsePKIPath(path))
	}
	if isSet(uri, "no_verify") {
		options = append(options, dialers.WithInsecureNoVerify())
	}
	return dialers.NewTLS(uri.Hostname(), options...)
}

func isSet(uri *url.URL, name string) bool {
	value := uri.Query().Get(name)
	return value != "" && value != "0"
}

// sshDialer goes through Go's own SSH client, for the transports ssh, libssh and libssh2.
func sshDialer(uri *url.URL, transport string) (socket.Dialer, error) {
	query := uri.Query()
	var options []dialers.SSHOption
	if transport == "ssh" {
		me, err := user.Current()
		if err != nil {
			return nil, err
		}
		options = append(options, dialers.WithSystemSSHDefaults(me))
	}
	for _, given := range []struct {
		value  string
		option func(string) dialers.SSHOption
	}{
		{uri.Port(), dialers.UseSSHPort},
		{uri.User.Username(), dialers.UseSSHUsername},
		{query.Get("socket"), dialers.WithRemoteSocket},
		{query.Get("keyfile"), dialers.UseKeyFile},
		{query.Get("known_hosts"), dialers.UseKnownHostsFile},
	} {
		if given.value != "" {
			options = append(options, given.option(given.value))
		}
	}
	if password, ok := uri.User.Password(); ok {
		options = append(options, dialers.UseSSHPassword(password))
	}
	switch verify := query.Get("known_hosts_verify"); {
	case verify == "ignore", isSet(uri, "no_verify"):
		options = append(options, dialers.WithInsecureIgnoreHostKey())
	case verify == "auto":
		options = append(options, dialers.WithAcceptUnknownHostKey())
	case verify != "" && verify != "normal":
		return nil, fmt.Errorf("known_hosts_verify=%s: only normal, auto and ignore are known", verify)
	}
	return dialers.NewSSH(uri.Hostname(), options...), nil
}
