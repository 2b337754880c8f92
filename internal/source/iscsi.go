package source

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// maxLUN is the highest logical unit number in flat addressing.
const maxLUN = 16383

var iscsiName = regexp.MustCompile(`^(?i:iqn\.[0-9]{4}-[0-9]{2}\.[a-z0-9.-]+(:[^,;*&$|/\s[:cntrl:]]+)?|` +
	`eui\.[0-9a-f]{16}|naa\.([0-9a-f]{16}|[0-9a-f]{32}))$`)

// Portal is the address of an iSCSI target. Host is a name or an address, without brackets.
type Portal struct {
	Host string
	Port int64
}

// String returns host:port, with an IPv6 address in brackets.
func (p Portal) String() string { return net.JoinHostPort(p.Host, strconv.FormatInt(p.Port, 10)) }

// ParsePortal parses host, host:port, [IPv6] or [IPv6]:port. The port defaults to 3260.
func ParsePortal(s string) (Portal, error) {
	host, port, err := splitAddress(s, volume.DefaultPort("iscsi"))
	if err != nil {
		return Portal{}, fmt.Errorf(
			"%q is no iSCSI portal: %w; examples are 192.0.2.1, storage.example.com:3260 and [2001:db8::1]:3260", s, err)
	}
	return Portal{Host: host, Port: port}, nil
}

// CheckLUN checks a logical unit number.
func CheckLUN(lun int64) error {
	if lun < 0 || lun > maxLUN {
		return fmt.Errorf("%d is no logical unit number: they go from 0 to %d", lun, maxLUN)
	}
	return nil
}

// ISCSIName checks the name of an iSCSI target or initiator, and keeps its case. It trims one trailing slash, which Kubernetes accepts and
// libvirt refuses: for libvirt a slash separates the name and the LUN.
func ISCSIName(s string) (string, error) {
	name := strings.TrimSuffix(s, "/")
	if !iscsiName.MatchString(name) || !isVisible(name) {
		return "", fmt.Errorf("%q is no iSCSI name; examples are iqn.2001-04.com.example:storage.disk1, eui.02004567a425678d and "+
			"naa.52004567ba64678d", s)
	}
	return name, nil
}

// ISCSIVolume returns the whole logical unit lun of the target iqn. The names must have been checked; an empty initiator means QEMU's
// default. capacity is in bytes, nil if it is unknown.
func ISCSIVolume(p Portal, iqn string, lun int64, initiator string, capacity *int64) volume.Volume {
	return volume.Volume{Capacity: capacity, Images: []volume.Image{{
		Type: "network", Format: "raw", Protocol: "iscsi", Name: fmt.Sprintf("%s/%d", iqn, lun),
		Servers: []volume.Server{{Host: p.Host, Port: &p.Port}}, Initiator: initiator,
	}}}
}
