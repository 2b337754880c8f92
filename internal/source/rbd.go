package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// cephEntity is the prefix of the full name of a Ceph user, which libvirt and the Kubernetes drivers omit.
const cephEntity = "client."

// RBDImage names a Ceph image. An empty Namespace is the pool's default one.
type RBDImage struct{ Pool, Namespace, Image string }

// Check refuses names that would lead to another image, with one Error for each invalid part: pool, namespace or image.
func (i RBDImage) Check() (wrong []*Error) {
	blame := func(attribute, name string) {
		if err := CheckName(name); err != nil {
			wrong = append(wrong, &Error{Attribute: attribute, Err: err})
		}
	}
	blame("pool", i.Pool)
	if i.Namespace != "" {
		blame("namespace", i.Namespace)
	}
	blame("image", i.Image)
	return wrong
}

func (i RBDImage) name() string {
	if i.Namespace == "" {
		return i.Pool + "/" + i.Image
	}
	return i.Pool + "/" + i.Namespace + "/" + i.Image
}

// Hint returns a warning if hosts may not be able to open the image; empty otherwise.
func (i RBDImage) Hint() string {
	if i.Namespace == "" {
		return ""
	}
	return fmt.Sprintf("The image %s is in the RADOS namespace %s. libvirt 9.0 hands no namespace on to QEMU, which then looks for "+
		"an image %s/%s in the default namespace. Before you rely on it, see whether the libvirt of your hosts can open it; an image in "+
		"the default namespace of its pool always works.", i.name(), i.Namespace, i.Namespace, i.Image)
}

// CheckCephUser refuses a user name that Ceph would not accept.
func CheckCephUser(name string) error {
	if !isVisible(name) || name == "" || strings.HasPrefix(name, cephEntity) {
		return fmt.Errorf("%q is no user of Ceph: write admin for client.admin, and no control characters", name)
	}
	return nil
}

// RBDVolume returns a Ceph image. Its names must have been checked. capacity is in bytes, nil if it is unknown.
func RBDVolume(monitors []volume.Server, i RBDImage, capacity *int64) volume.Volume {
	return volume.Volume{Capacity: capacity, Images: []volume.Image{{
		Type: "network", Format: "raw", Protocol: "rbd", Name: i.name(), Servers: monitors,
	}}}
}

// The two messengers of a monitor, and their ports. librados assumes the messenger of an address without one by these ports; on other ports
// it tries both (MonMap::_add_ambiguous_addr). libvirt can't configure the messenger.
const (
	messenger1, port1 = "v1", 6789
	messenger2, port2 = "v2", 3300
)

type monitorAddress struct {
	messenger string // empty if it is not given
	server    volume.Server
}

// ParseMonitors parses monitors in the forms of Kubernetes and Ceph: host:port, v1:host:port, or several addresses of one monitor as
// [v2:host:3300/0,v1:host:6789/0]. Of these it returns the address of messenger v1, which all clients support, or else that of messenger
// v2. IPv6 addresses are in brackets.
func ParseMonitors(list []string) ([]volume.Server, error) {
	var servers []volume.Server
	var unusable []string
	for _, entry := range list {
		for _, monitor := range splitList(entry) {
			addresses, err := parseMonitor(monitor)
			if err != nil {
				return nil, fmt.Errorf("%q is no monitor: %w; examples are 192.0.2.1:6789, v1:mon-a.example.com:6789 and "+
					"[v2:192.0.2.1:3300/0,v1:192.0.2.1:6789/0]", monitor, err)
			}
			server, ok := choose(addresses)
			switch {
			case !ok:
				unusable = append(unusable, monitor)
			case !slices.ContainsFunc(servers, func(s volume.Server) bool { return s.Host == server.Host && *s.Port == *server.Port }):
				servers = append(servers, server)
			}
		}
	}
	switch {
	case len(servers) > 0:
		return servers, nil
	case len(unusable) > 0:
		return nil, fmt.Errorf("no client can be told to use the monitors %s: without the messenger, which libvirt can't name, "+
			"port %d means %s and port %d means %s", strings.Join(unusable, ", "), port1, messenger1, port2, messenger2)
	}
	return nil, errors.New("there is no monitor in it")
}

// splitList splits a list at the commas outside of brackets.
func splitList(s string) (parts []string) {
	depth, start := 0, 0
	for n, c := range s {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			parts, start = append(parts, strings.TrimSpace(s[start:n])), n+1
		}
	}
	return append(parts, strings.TrimSpace(s[start:]))
}

func parseMonitor(s string) ([]monitorAddress, error) {
	parts := []string{s}
	if inner, ok := strings.CutPrefix(s, "["); ok &&
		(strings.HasPrefix(inner, messenger1+":") || strings.HasPrefix(inner, messenger2+":")) {
		if inner, ok = strings.CutSuffix(inner, "]"); !ok {
			return nil, errors.New("it has no closing bracket")
		}
		parts = splitList(inner)
	}
	var all []monitorAddress
	for _, part := range parts {
		a, err := parseMonitorAddress(part)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// parseMonitorAddress parses one address. The number after a slash distinguishes two processes at one address; for a monitor it is always
// 0.
func parseMonitorAddress(s string) (monitorAddress, error) {
	var a monitorAddress
	defaultPort := int64(port1)
	if rest, ok := strings.CutPrefix(s, messenger1+":"); ok {
		a.messenger, s = messenger1, rest
	} else if rest, ok := strings.CutPrefix(s, messenger2+":"); ok {
		a.messenger, s, defaultPort = messenger2, rest, port2
	}
	if rest, nonce, ok := strings.Cut(s, "/"); ok {
		if strings.Trim(nonce, "0123456789") != "" {
			return a, errors.New("only a number may follow the slash")
		}
		s = rest
	}
	host, port, err := splitAddress(s, defaultPort)
	a.server = volume.Server{Host: host, Port: &port}
	return a, err
}

// choose returns the address to use for a monitor; ok is false if there is none.
func choose(addresses []monitorAddress) (best volume.Server, ok bool) {
	for _, a := range addresses {
		port := *a.server.Port
		switch {
		case a.messenger == messenger1 && port == port2 || a.messenger == messenger2 && port == port1:
			continue
		case a.messenger == messenger2 && ok:
			continue
		}
		best, ok = a.server, true
		if a.messenger == messenger1 {
			break
		}
	}
	return best, ok
}
