package volume

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// defaultPorts are those of QEMU's network protocols, for servers that name none. Of Ceph it is that of messenger v1.
var defaultPorts = map[string]int64{
	"gluster": 24007, "http": 80, "https": 443, "iscsi": 3260, "nbd": 10809, "nfs": 2049, "rbd": 6789,
}

// DefaultPort is the one that a protocol's servers listen on when they name none; 0 of a protocol that nobody knows.
func DefaultPort(protocol string) int64 { return defaultPorts[protocol] }

// SameStorage tells whether a and b are the same storage, so that one writing would change the other. It is a relation
// and not a key: storage that is reached by several servers or from several hosts has no single name. It is symmetric
// and reflexive but, where an image is less than fully known, not transitive.
func SameStorage(a, b Image) bool {
	if IsRemade(a, b) {
		return false
	}
	if x, y := iscsiUnit(a), iscsiUnit(b); x.name != "" && y.name != "" {
		return x == y
	}
	if a.Type != "network" && b.Type != "network" {
		// A device is the same whether it is opened as a file or as a block device. Domains made by hand spell paths as they like.
		return path.Clean(a.Name) == path.Clean(b.Name) && shareHost(a, b)
	}
	if a.Type != b.Type || a.Protocol != b.Protocol {
		return false
	}
	if a.Protocol == "rbd" && (len(a.Servers) == 0 || len(b.Servers) == 0) {
		return a.Name == b.Name // the host's ceph.conf has the monitors
	}
	return a.Name == b.Name && a.Query == b.Query && common(a.Servers, b.Servers, func(x, y Server) bool {
		// A socket is a file: the same path on another host is another server.
		return x.address(a.Protocol) == y.address(a.Protocol) && (x.Transport != "unix" || shareHost(a, b))
	})
}

// IsRemade tells whether two images of one name are known to be two that were made one after the other.
func IsRemade(a, b Image) bool {
	return a.Generation != "" && b.Generation != "" && LastingGeneration(a.Generation) != LastingGeneration(b.Generation)
}

// IsMoved tells whether two images are known to be one, or copies of one, at different paths.
func IsMoved(a, b Image) bool {
	return a.Generation != "" && b.Generation != "" && LastingGeneration(a.Generation) == LastingGeneration(b.Generation) &&
		path.Clean(a.Name) != path.Clean(b.Name)
}

// LastingGeneration is a generation as the UUID that hosts know it by. Those of earlier versions were none.
func LastingGeneration(generation string) string {
	if _, err := uuid.Parse(generation); err == nil {
		return generation
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(generation)).String()
}

func shareHost(a, b Image) bool {
	return common(a.Hosts, b.Hosts, func(x, y string) bool { return x == y })
}

// common tells whether two lists share an element. Two empty ones do: nothing says that they differ.
func common[T any](a, b []T, same func(x, y T) bool) bool {
	if len(a) == 0 && len(b) == 0 {
		return true
	}
	return slices.ContainsFunc(a, func(x T) bool {
		return slices.ContainsFunc(b, func(y T) bool { return same(x, y) })
	})
}

// Overlap tells whether writing to a would change b: they are the same storage, or one is a partition of the other.
func Overlap(a, b Image) bool {
	if x, y := iscsiUnit(a), iscsiUnit(b); x.name != "" && x.name == y.name && (x.part == "" || y.part == "") {
		return true
	}
	return SameStorage(a, b)
}

// unit is an iSCSI target and logical unit, or a partition of it.
type unit struct{ name, part string }

// iscsiUnit is the unit that an image is, where its name tells. iSCSI names are compared in lower case (RFC 3722), and
// libvirt reads the unit as a number, 0 where there is none.
func iscsiUnit(i Image) unit {
	target, number, _ := strings.Cut(i.Name, "/")
	part := ""
	if i.Type != "network" {
		found := byPath.FindStringSubmatch(i.Name)
		if found == nil {
			return unit{}
		}
		target, number, part = found[1], found[2], found[3]
	} else if i.Protocol != "iscsi" {
		return unit{}
	}
	return unit{strings.ToLower(target) + "/" + strings.TrimLeft(number, "0"), part}
}

// byPath is how udev names a logical unit that the host itself has logged in to, or a partition of it, below
// /dev/disk/by-path (60-persistent-storage.rules), and libvirt the volumes of its pools of the types iscsi and iscsi-direct.
var byPath = regexp.MustCompile(`(?:^|/)ip-[^/]+-iscsi-([^/]+)-lun-(\d+)(?:-part(\d+))?$`)

// address is where the server listens. Which transport carries it does not matter. A monitor of Ceph listens on a port for
// each version of the protocol: its host alone names it.
func (s Server) address(protocol string) string {
	if s.Transport == "unix" {
		return s.Socket
	}
	if protocol == "rbd" {
		return strings.ToLower(s.Host)
	}
	port := DefaultPort(protocol)
	if s.Port != nil {
		port = *s.Port
	}
	return strings.ToLower(s.Host) + ":" + strconv.FormatInt(port, 10)
}

// SameMaster tells whether a copy of was is one of is, too. That is known for iSCSI and RBD by name alone, since storage
// that moves to other servers keeps its name; for other protocols only a common server tells, and clear is false where
// there is none.
func SameMaster(was, is Image) (same, clear bool) {
	if SameStorage(was, is) {
		return true, true
	}
	network := was.Type == "network" && is.Type == "network" && was.Protocol == is.Protocol && was.Name == is.Name &&
		was.Query == is.Query
	switch {
	case !network || was.Protocol == "iscsi":
		return false, true
	case was.Protocol == "rbd":
		return true, true
	}
	return false, false
}
