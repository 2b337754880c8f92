package host

import "net/url"

// Weakness is what a URI does without, so that others can read, or be asked instead of the host.
type Weakness string

// The weaknesses, by what the URI has in it. A host whose key is taken when it is new (known_hosts_verify=auto) is none.
const (
	Unencrypted   Weakness = "qemu+tcp"
	NoCertificate Weakness = "no_verify"
	NoHostKey     Weakness = "known_hosts_verify=ignore"
)

// WeaknessOf is the weakness of a URI that ValidateURI accepts; empty for most.
func WeaknessOf(text string) Weakness {
	uri, err := url.Parse(text)
	if err != nil {
		return ""
	}
	switch transport := transportOf(uri); {
	case transport == "tcp":
		return Unencrypted
	case transport == "tls" && isUnverified(uri):
		return NoCertificate
	case transport == "ssh" && (uri.Query().Get("known_hosts_verify") == "ignore" || isUnverified(uri)):
		return NoHostKey
	}
	return ""
}
