package host

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// dialTimeout limits how long a host may take to accept a connection, unless it is configured.
const dialTimeout = 10 * time.Second

// parameters are the allowed parameters of a URI, by transport.
var parameters = map[string][]string{
	"unix": {"name", "socket"},
	"tcp":  {"name"},
	"tls":  {"name", "no_verify", "pkipath"},
	"ssh":  {"command", "keyfile", "known_hosts", "known_hosts_verify", "name", "netcat", "no_tty", "no_verify", "proxy", "socket"},
}

// transportOf is the transport of a URI. As in libvirt, a host alone means tls.
func transportOf(uri *url.URL) string {
	_, transport, _ := strings.Cut(uri.Scheme, "+")
	switch {
	case transport != "":
		return transport
	case uri.Host != "":
		return "tls"
	}
	return "unix"
}

// isSession reports whether a URI is that of a user's own libvirtd.
func isSession(uri *url.URL) bool { return uri.Path == "/session" }

// isUnverified reports whether a URI disables the verification of the server.
func isUnverified(uri *url.URL) bool {
	value := uri.Query().Get("no_verify")
	return value != "" && value != "0"
}

// ValidateURI checks a URI without connecting: it must have the QEMU driver, a supported transport, and only parameters of this transport
// (https://libvirt.org/uri.html).
func ValidateURI(text string) error {
	uri, err := url.Parse(text)
	if err != nil {
		// not printed, because it may have a password
		return errors.New("it is not a URI; write for example qemu:///system or qemu+ssh://root@host/system")
	}
	if driver, _, _ := strings.Cut(uri.Scheme, "+"); driver != "qemu" {
		return fmt.Errorf("the URI %s has the driver %q; only qemu is supported, for example qemu:///system", uri.Redacted(), driver)
	}
	if uri.Path != "/system" && uri.Path != "/session" {
		return fmt.Errorf("the URI %s must end in /system or /session", uri.Redacted())
	}
	if err := validateTransport(uri); err != nil {
		return fmt.Errorf("the URI %s %w", uri.Redacted(), err)
	}
	return nil
}

func validateTransport(uri *url.URL) error {
	transport := transportOf(uri)
	known, ok := parameters[transport]
	switch {
	case transport == "libssh" || transport == "libssh2":
		return fmt.Errorf("has the transport %q, libvirt's own SSH client; write qemu+ssh, which goes through the ssh program", transport)
	case !ok:
		return fmt.Errorf("has the transport %q; supported are unix, tcp, tls and ssh", transport)
	case transport != "unix" && uri.Hostname() == "":
		return fmt.Errorf("names no host")
	}
	query, err := url.ParseQuery(uri.RawQuery)
	if err != nil {
		return fmt.Errorf("has parameters that can't be read: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("has the parameter %q; those of the transport %s are %s", name, transport, strings.Join(known, ", "))
		}
	}
	if _, has := uri.User.Password(); has {
		return errors.New("has a password, which libvirt does not take: ssh uses a key, with ssh-agent where it has a passphrase, TLS a " +
			"certificate")
	}
	if err := validateValues(query); err != nil {
		return err
	}
	if transport == "ssh" {
		return validateSSH(uri)
	}
	return nil
}

// files are the parameters that are paths.
var files = []string{"keyfile", "known_hosts", "pkipath", "socket"}

// validateValues refuses invalid paths and names, and values that other programs would interpret.
func validateValues(query url.Values) error {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		for _, value := range query[name] {
			if strings.ContainsFunc(value, func(r rune) bool { return r == utf8.RuneError || !unicode.IsGraphic(r) }) {
				return fmt.Errorf("has the parameter %s=%q with a control character or one that can't be seen", name, value)
			}
			// ssh itself expands ~.
			forSSH := (name == "keyfile" || name == "known_hosts") && strings.HasPrefix(value, "~/")
			if slices.Contains(files, name) && value != "" && !strings.HasPrefix(value, "/") && !forSSH {
				return fmt.Errorf("has the parameter %s=%q, which must be an absolute path", name, value)
			}
		}
		if len(query[name]) > 1 {
			return fmt.Errorf("has the parameter %s twice", name)
		}
	}
	return nil
}
