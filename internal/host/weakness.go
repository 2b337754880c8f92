package host

import "net/url"

// Weakness is a missing protection of a URI's transport: against eavesdropping, or against servers that impersonate the host.
type Weakness string

// The weaknesses, by the part of the URI. A host key that is accepted on first use (known_hosts_verify=auto) is none.
const (
	Unencrypted   Weakness = "qemu+tcp"
	NoCertificate Weakness = "no_verify"
	NoHostKey     Weakness = "known_hosts_verify=ignore"
)

// WeaknessOf returns the weakness of a URI that ValidateURI accepts; empty for most.
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
