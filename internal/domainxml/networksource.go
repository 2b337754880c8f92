package domainxml

import (
	"strconv"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func networkSource(i volume.Image) *libvirtxml.DomainDiskSource {
	n := &libvirtxml.DomainDiskSourceNetwork{
		Protocol: i.Protocol, Name: i.Name, Query: i.Query, Hosts: newHosts(i.Servers), Identity: newIdentity(i),
	}
	if i.Auth != nil {
		n.Auth = &libvirtxml.DomainDiskAuth{
			Username: i.Auth.Username,
			Secret:   &libvirtxml.DomainDiskSecret{Type: i.Auth.Type, UUID: i.Auth.SecretUUID},
		}
	}
	if i.Initiator != "" {
		n.Initiator = &libvirtxml.DomainDiskSourceNetworkInitiator{
			IQN: &libvirtxml.DomainDiskSourceNetworkIQN{Name: i.Initiator},
		}
	}
	s := &libvirtxml.DomainDiskSource{Network: n}
	applyTLS(s, i)
	return s
}

// newHosts writes the ports as they are. libvirt adds the default of all protocols but two: for RBD it would pass port 0 to QEMU, and
// for NFS it refuses any port.
func newHosts(servers []volume.Server) (hosts []libvirtxml.DomainDiskSourceHost) {
	for _, s := range servers {
		h := libvirtxml.DomainDiskSourceHost{Transport: s.Transport, Name: s.Host, Socket: s.Socket}
		if s.Port != nil {
			h.Port = strconv.FormatInt(*s.Port, 10)
		}
		hosts = append(hosts, h)
	}
	return hosts
}

// numeric marks an identity as a number, which libvirt would otherwise look up as a name first.
const numeric = "+"

// newIdentity is the user and group as which QEMU connects to an NFS server.
func newIdentity(i volume.Image) *libvirtxml.DomainDiskSourceNetworkIdentity {
	if i.User == "" && i.Group == "" {
		return nil
	}
	return &libvirtxml.DomainDiskSourceNetworkIdentity{User: newID(i.User), Group: newID(i.Group)}
}

func newID(id string) string {
	if id == "" {
		return ""
	}
	return numeric + id
}

// applyTLS enables an encrypted connection. The protocol https implies it, and the server is verified unless that is disabled.
func applyTLS(s *libvirtxml.DomainDiskSource, i volume.Image) {
	switch {
	case !i.TLS:
	case i.Protocol != https:
		s.Network.TLS = "yes"
	case !i.TLSVerify:
		s.SSL = &libvirtxml.DomainDiskSourceSSL{Verify: "no"}
	}
}

const https = "https"

func parseNetwork(s *libvirtxml.DomainDiskSource) volume.Image {
	n := s.Network
	i := volume.Image{Type: "network", Protocol: n.Protocol, Name: n.Name, Query: n.Query}
	if strings.HasPrefix(n.Protocol, "http") && !strings.HasPrefix(n.Name, "/") {
		i.Name = "/" + n.Name // libvirt adds it, too
	}
	for _, h := range n.Hosts {
		server := volume.Server{Host: h.Name, Transport: h.Transport, Socket: h.Socket}
		if port, err := strconv.ParseInt(h.Port, 10, 64); err == nil {
			server.Port = &port
		}
		i.Servers = append(i.Servers, server)
	}
	if n.Auth != nil {
		i.Auth = parseAuth(n.Auth)
	}
	if n.Initiator != nil && n.Initiator.IQN != nil {
		i.Initiator = n.Initiator.IQN.Name
	}
	if n.Identity != nil {
		i.User, i.Group = strings.TrimPrefix(n.Identity.User, numeric), strings.TrimPrefix(n.Identity.Group, numeric)
	}
	i.TLS = n.Protocol == https || n.TLS == "yes"
	i.TLSVerify = i.TLS && (s.SSL == nil || s.SSL.Verify != "no")
	return i
}

func parseAuth(a *libvirtxml.DomainDiskAuth) *volume.Auth {
	auth := &volume.Auth{Username: a.Username}
	if a.Secret != nil {
		auth.Type, auth.SecretUUID = a.Secret.Type, a.Secret.UUID
	}
	return auth
}
