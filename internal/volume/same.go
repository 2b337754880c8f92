package volume

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// defaultPorts are the ports of QEMU's network protocols, for servers without one. The port of Ceph is that of messenger v1.
var defaultPorts = map[string]int64{
	"gluster": 24007, "http": 80, "https": 443, "iscsi": 3260, "nbd": 10809, "nfs": 2049, "rbd": 6789,
}

// DefaultPort returns the default port of a protocol; 0 if the protocol is unknown.
func DefaultPort(protocol string) int64 { return defaultPorts[protocol] }

// SameStorage reports whether a and b are the same storage, so that writing to one would change the other. It is a relation and not a key:
// storage that is reached by several servers or from several hosts has no single name. It is symmetric and reflexive but, if an image is
// only partly known, not transitive.
func SameStorage(a, b Image) bool {
	if IsRemade(a, b) {
		return false
	}
	if x, y := iscsiUnit(a), iscsiUnit(b); x.name != "" && y.name != "" {
		return x == y
	}
	if a.Type != "network" && b.Type != "network" {
		// A device is the same, opened as a file or as a block device. Domains that virtclaim did not define may spell paths differently.
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

// SameImages reports whether two volumes have the same chain of images: of the same names, and none of them recreated.
func SameImages(a, b Volume) bool {
	return slices.EqualFunc(a.Images, b.Images, func(a, b Image) bool { return a.Name == b.Name && !IsRemade(a, b) })
}

// IsRemade reports whether two images of one name are known to be different ones, because one was created after the other was deleted.
func IsRemade(a, b Image) bool {
	return a.Generation != "" && b.Generation != "" && LastingGeneration(a.Generation) != LastingGeneration(b.Generation)
}

// IsMoved reports whether two images are known to be the same one, or copies of it, at different paths.
func IsMoved(a, b Image) bool {
	return a.Generation != "" && b.Generation != "" && LastingGeneration(a.Generation) == LastingGeneration(b.Generation) &&
		path.Clean(a.Name) != path.Clean(b.Name)
}

// IsPair reports whether there is what a disk of one host is on another one: the same disk, or one without writes that was made for both
// hosts.
func IsPair(is, there Volume, from, to string) bool {
	if len(is.Images) == 0 || len(there.Images) == 0 {
		return false
	}
	a, b := is.Images[0], there.Images[0]
	isSame := a.Generation != "" && b.Generation != "" && LastingGeneration(a.Generation) == LastingGeneration(b.Generation)
	return a.IsDisk() && b.IsDisk() && (isSame || a.AccessMode == ReadShared && b.AccessMode == ReadShared) &&
		slices.Equal(a.Hosts, []string{from}) && slices.Equal(b.Hosts, []string{to})
}

// LastingGeneration returns a generation as the UUID under which hosts know it. Generations of earlier versions were no UUIDs.
func LastingGeneration(generation string) string {
	if _, err := uuid.Parse(generation); err == nil {
		return generation
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(generation)).String()
}

func shareHost(a, b Image) bool {
	return common(a.Hosts, b.Hosts, func(x, y string) bool { return x == y })
}

// common reports whether two lists share an element. Two empty lists do, because nothing shows that they differ.
func common[T any](a, b []T, same func(x, y T) bool) bool {
	if len(a) == 0 && len(b) == 0 {
		return true
	}
	return slices.ContainsFunc(a, func(x T) bool {
		return slices.ContainsFunc(b, func(y T) bool { return same(x, y) })
	})
}

// Overlap reports whether writing to a would change b: they are the same storage, one is a partition of the other, or one is a folder that
// has the other.
func Overlap(a, b Image) bool {
	if x, y := iscsiUnit(a), iscsiUnit(b); x.name != "" && x.name == y.name && (x.part == "" || y.part == "") {
		return true
	}
	return SameStorage(a, b) || shareHost(a, b) && (a.contains(b) || b.contains(a))
}

// contains reports whether a folder has another one, or a file, below it. A folder that is shared without a binding may have the storage
// pools of other machines below it.
func (i Image) contains(other Image) bool {
	if !i.IsFolder() || other.Type == "network" || i.Binding == "" && !other.IsFolder() {
		return false
	}
	return strings.HasPrefix(path.Clean(other.Name), strings.TrimSuffix(path.Clean(i.Name), "/")+"/")
}

// StorageKey is the same for the same storage as a host sees it: a file of that path may be another one on another host. Servers with
// several names have several keys; SameStorage is the relation.
func (i Image) StorageKey() string {
	if u := iscsiUnit(i); u.name != "" {
		return strings.Join([]string{"iscsi", u.name, u.part}, "\x00")
	}
	if i.Type != "network" {
		return path.Clean(i.Name)
	}
	servers := make([]string, 0, len(i.Servers))
	for _, s := range i.Servers {
		servers = append(servers, s.address(i.Protocol))
	}
	slices.Sort(servers)
	return strings.Join(append([]string{i.Protocol, i.Name, i.Query}, servers...), "\x00")
}

// unit is an iSCSI target and logical unit, or a partition of it.
type unit struct{ name, part string }

// iscsiUnit returns the unit of an image, if its name has one. iSCSI names are compared in lower case (RFC 3722), and libvirt parses the
// unit as a number, with the default 0.
func iscsiUnit(i Image) unit {
	target, number, _ := strings.Cut(i.Name, "/")
	part := ""
	if i.Type != "network" {
		if !strings.Contains(i.Name, "-lun-") {
			return unit{} // a plan compares each image with each other one, and the expression is slow
		}
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

// IsReferencedIn reports whether a text has the image's name as a value or at the end of a path, in any spelling that Overlap takes for it.
// An image without a name, as the default export of an NBD server, is referenced by its servers.
func (i Image) IsReferencedIn(text string) bool {
	var names []string
	switch u := iscsiUnit(i); {
	case u.name != "":
		name, number, _ := strings.Cut(u.name, "/")
		target, number := "(?i:"+regexp.QuoteMeta(name)+")", regexp.QuoteMeta(number)
		names = []string{target + "(?:/0*" + number + `|-lun-0*` + number + `(?:-part\d+)?)`}
		if number == "" {
			names = append(names, target)
		}
	case i.Type != "network":
		text, names = slashes.ReplaceAllString(text, "/"), []string{regexp.QuoteMeta(path.Clean(i.Name))}
	case i.Name != "":
		names = []string{regexp.QuoteMeta(i.Name)}
	default:
		for _, s := range i.Servers {
			names = append(names, regexp.QuoteMeta(s.Host+s.Socket)+"(?:[:/][^\"'<]*)?")
		}
	}
	return regexp.MustCompile(`["'>:/-](?:` + strings.Join(names, "|") + `)["'<?]`).MatchString(text)
}

var slashes = regexp.MustCompile("/+")

// byPath matches udev's names of a logical unit that the host itself has logged in to, or of a partition of it, below /dev/disk/by-path
// (60-persistent-storage.rules), and libvirt's names of volumes in pools of the types iscsi and iscsi-direct.
var byPath = regexp.MustCompile(`(?:^|/)ip-[^/]+-iscsi-([^/]+)-lun-(\d+)(?:-part(\d+))?$`)

// address returns the address of the server, without its transport. A Ceph monitor has a port for each version of the protocol, so that its
// address is its host alone.
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

// SameMaster reports whether a copy of was is also a copy of is. iSCSI and RBD need only the name for that, since storage that moves to
// other servers keeps it; other protocols need a common server, and certain is false if there is none.
func SameMaster(was, is Image) (same, certain bool) {
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
