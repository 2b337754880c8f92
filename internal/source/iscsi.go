package source

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

const defaultPort = 3260

var (
	portalForm  = regexp.MustCompile(`^(?:\[([^\[\]]*)\]|([^\[\]:]*))(?::([0-9]{1,5}))?$`)
	hostName    = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)
	numericEnd  = regexp.MustCompile(`(^|\.)[0-9]+\.?$`)
	iscsiName   = regexp.MustCompile(`^(?i:iqn\.[0-9]{4}-[0-9]{2}\.[a-z0-9.-]+(:[^,;*&$|/\s[:cntrl:]]+)?|eui\.[0-9a-f]{16}|naa\.([0-9a-f]{16}|[0-9a-f]{32}))$`)
	errBrackets = errors.New("an IPv6 address needs brackets, because its end could be the port")
)

// Portal is the address of an iSCSI target. Host is a name or an address, without brackets.
type Portal struct {
	Host string
	Port int64
}

// String is the portal as it is written: host:port, with an IPv6 address in brackets.
func (p Portal) String() string { return net.JoinHostPort(p.Host, strconv.FormatInt(p.Port, 10)) }

// ParsePortal reads host, host:port, [IPv6] or [IPv6]:port. The port defaults to iSCSI's own.
func ParsePortal(s string) (Portal, error) {
	p, err := splitPortal(s)
	if err != nil {
		return Portal{}, fmt.Errorf(
			"%q is no iSCSI portal: %w; examples are 192.0.2.1, storage.example.com:3260 and [2001:db8::1]:3260", s, err)
	}
	return p, nil
}

func splitPortal(s string) (Portal, error) {
	if ip, err := netip.ParseAddr(s); err == nil && ip.Is6() {
		return Portal{}, errBrackets
	}
	m := portalForm.FindStringSubmatch(s)
	if m == nil {
		return Portal{}, errors.New("it is not of the form host:port")
	}
	port, err := parsePort(m[3])
	if err != nil {
		return Portal{}, err
	}
	if strings.HasPrefix(s, "[") {
		ip, err := netip.ParseAddr(m[1])
		if err != nil || !ip.Is6() || ip.Zone() != "" {
			return Portal{}, fmt.Errorf("%q is no IPv6 address", m[1])
		}
		return Portal{Host: ip.String(), Port: port}, nil
	}
	return Portal{Host: m[2], Port: port}, checkHost(m[2])
}

func parsePort(digits string) (int64, error) {
	if digits == "" {
		return defaultPort, nil
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("port %s is not between 1 and 65535", digits)
	}
	return int64(port), nil
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

// ISCSIName checks the name of an iSCSI target or initiator. It trims one trailing slash, which Kubernetes lets through
// and libvirt refuses: to libvirt a slash ends the name and begins the LUN.
func ISCSIName(s string) (string, error) {
	name := strings.TrimSuffix(s, "/")
	if !iscsiName.MatchString(name) {
		return "", fmt.Errorf("%q is no iSCSI name; examples are iqn.2001-04.com.example:storage.disk1, eui.02004567a425678d and "+
			"naa.52004567ba64678d", s)
	}
	return name, nil
}

// ISCSIVolume is the whole logical unit lun of the target iqn. The names must have been checked; an empty initiator
// leaves the choice to QEMU. capacity is in bytes, nil when nobody knows it.
func ISCSIVolume(p Portal, iqn string, lun int64, initiator string, capacity *int64) volume.Volume {
	return volume.Volume{Capacity: capacity, Images: []volume.Image{{
		Type: "network", Format: "raw", Protocol: "iscsi", Name: fmt.Sprintf("%s/%d", iqn, lun),
		Servers: []volume.Server{{Host: p.Host, Port: &p.Port}}, Initiator: initiator,
	}}}
}
