package source

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var (
	addressForm = regexp.MustCompile(`^(?:\[([^\[\]]*)\]|([^\[\]:]*))(?::([0-9]{1,5}))?$`)
	hostName    = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)
	numericEnd  = regexp.MustCompile(`(^|\.)[0-9]+\.?$`)
	errBrackets = errors.New("an IPv6 address needs brackets, because its end could be the port")
)

// ParseServer parses the address of a server: host, host:port, [IPv6] or [IPv6]:port. The port defaults to the protocol's. Names are not
// resolved, because each host may resolve them differently.
func ParseServer(s, protocol string) (volume.Server, error) {
	host, port, err := splitAddress(s, volume.DefaultPort(protocol))
	if err != nil {
		return volume.Server{}, fmt.Errorf("%q is no address of a server: %w; examples are 192.0.2.1, storage.example.com:%d and "+
			"[2001:db8::1]:%[3]d", s, err, volume.DefaultPort(protocol))
	}
	return volume.Server{Host: host, Port: &port}, nil
}

// ParseHost parses the address of a server without a port: a name, or an IP address with or without brackets.
func ParseHost(s string) (string, error) {
	if ip, err := parseIPv6(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")); err == nil {
		return ip, nil
	}
	if err := checkHost(s); err != nil {
		return "", fmt.Errorf("%w; examples are 192.0.2.1, storage.example.com and 2001:db8::1", err)
	}
	return s, nil
}

func splitAddress(s string, defaultPort int64) (host string, port int64, err error) {
	if ip, err := netip.ParseAddr(s); err == nil && ip.Is6() {
		return "", 0, errBrackets
	}
	m := addressForm.FindStringSubmatch(s)
	if m == nil {
		return "", 0, errors.New("it is not of the form host:port")
	}
	if port, err = parsePort(m[3], defaultPort); err != nil {
		return "", 0, err
	}
	if strings.HasPrefix(s, "[") {
		host, err = parseIPv6(m[1])
		return host, port, err
	}
	return m[2], port, checkHost(m[2])
}

func parsePort(digits string, defaultPort int64) (int64, error) {
	if digits == "" {
		return defaultPort, nil
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("port %s is not between 1 and 65535", digits)
	}
	return int64(port), nil
}

func parseIPv6(s string) (string, error) {
	ip, err := netip.ParseAddr(s)
	if err != nil || !ip.Is6() || ip.Zone() != "" {
		return "", fmt.Errorf("%q is no IPv6 address", s)
	}
	return ip.String(), nil
}

func checkHost(host string) error {
	if !hostName.MatchString(host) {
		return fmt.Errorf("%q is no host name", host)
	}
	if _, err := netip.ParseAddr(host); err != nil && numericEnd.MatchString(host) {
		return fmt.Errorf("%q is no IPv4 address", host)
	}
	return nil
}
