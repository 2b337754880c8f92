package host

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// dialTimeout bounds how long a host may take to accept a connection.
const dialTimeout = 10 * time.Second

// ValidateURI checks, without dialling, that a libvirt could be reached at a URI: the QEMU driver, over a transport
// that is supported (https://libvirt.org/uri.html).
func ValidateURI(text string) error {
	uri, err := url.Parse(text)
	if err != nil {
		return fmt.Errorf("%q is not a URI; write for example qemu:///system or qemu+ssh://root@host/system", text)
	}
	driver, transport, _ := strings.Cut(uri.Scheme, "+")
	if driver != "qemu" {
		return fmt.Errorf("the URI %s has the driver %q; only qemu is supported, for example qemu:///system", uri.Redacted(), driver)
	}
	if uri.Path != "/system" && uri.Path != "/session" {
		return fmt.Errorf("the URI %s must end in /system or /session", uri.Redacted())
	}
	switch transport {
	case "", "unix":
		return nil
	case "tcp", "tls", "ssh", "libssh", "libssh2":
		if uri.Hostname() == "" {
			return fmt.Errorf("the URI %s names no host", uri.Redacted())
		}
		return nil
	}
	return fmt.Errorf("the URI %s has the transport %q; supported are unix, tcp, tls and ssh", uri.Redacted(), transport)
}
