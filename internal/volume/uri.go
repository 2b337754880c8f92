package volume

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// absolute are the protocols whose names are paths with a leading slash.
var absolute = []string{"http", "https", "nfs"}

// ofHosts are the types of images that are no network storage.
var ofHosts = []string{"file", "block", "dir", "volume"}

// URI returns what an image is and where, in the spelling of QEMU and libvirt: a path, such as /srv/disk.img, /dev/sdb or, with a slash at
// its end, a folder, rbd:pool/image, or protocol://host:port/name, with the transport as in nbd+unix:///name?socket=/path. It has the first
// server (of RBD none), the query, TLS of NBD (nbds) and, of NFS, the user and group as ?uid= and ?gid=. It is empty for an image without a
// name. ParseURI is its inverse.
func (i Image) URI() string {
	isPath, isDevice := strings.HasPrefix(i.Name, "/"), strings.HasPrefix(i.Name, "/dev/")
	switch {
	case i.Type == "network":
		return i.networkURI()
	case i.IsFolder() && isPath && path.Clean(i.Name) == i.Name:
		return strings.TrimSuffix(i.Name, "/") + "/"
	case strings.HasSuffix(i.Name, "/"): // which only a folder has without its type
	case i.Name == "", i.Type == "block" && isDevice, i.Type == "file" && isPath && !isDevice:
		return i.Name
	}
	return i.Type + ":" + i.Name
}

func (i Image) networkURI() string {
	if i.Protocol == "rbd" {
		return "rbd:" + i.Name
	}
	scheme, address, query := i.Protocol, "", url.Values{}
	if i.TLS && scheme == "nbd" {
		scheme = "nbds"
	}
	if len(i.Servers) > 0 {
		first := i.Servers[0]
		if first.Transport != "" {
			scheme += "+" + first.Transport
		}
		set(query, "socket", first.Socket)
		address = first.hostPort()
	}
	set(query, "uid", i.User)
	set(query, "gid", i.Group)
	name := i.Name
	if name != "" && (!slices.Contains(absolute, i.Protocol) || !strings.HasPrefix(name, "/")) {
		name = "/" + name
	}
	uri := scheme + "://" + address + (&url.URL{Path: name}).EscapedPath()
	if raw := i.Query + readable.Replace(query.Encode()); raw != "" {
		uri += "?" + raw
	}
	return uri
}

// readable undoes what a form would need, and a URI does not.
var readable = strings.NewReplacer("%2F", "/", "+", "%20")

func set(query url.Values, key, value string) {
	if value != "" {
		query.Set(key, value)
	}
}

// FurtherServers returns the addresses that the URI has no room for: those of RBD, and all but the first of other protocols.
func (i Image) FurtherServers() (addresses []string) {
	for n, s := range i.Servers {
		if n > 0 || i.Protocol == "rbd" {
			addresses = append(addresses, s.String())
		}
	}
	return addresses
}

// String returns the server as host:port, or transport://host:port, or unix:///path. ParseServer is its inverse.
func (s Server) String() string {
	if s.Transport == "" {
		return s.hostPort()
	}
	return s.Transport + "://" + s.hostPort() + s.Socket
}

// hostPort is the address on the network; empty if it has none.
func (s Server) hostPort() string {
	host := url.PathEscape(s.Host)
	if strings.Contains(s.Host, ":") {
		host = "[" + host + "]"
	}
	if s.Port == nil {
		return host
	}
	return host + ":" + strconv.FormatInt(*s.Port, 10)
}

// ParseURI returns the image that a URI names. Format, access mode, hosts and what else is beside the URI are empty.
func ParseURI(uri string) (Image, error) {
	scheme, rest, isNetwork := strings.Cut(uri, "://")
	switch kind, name, _ := strings.Cut(uri, ":"); {
	case uri == "":
		return Image{Type: "file"}, nil
	case strings.HasPrefix(uri, "/") && strings.HasSuffix(uri, "/"):
		return Image{Type: "dir", Name: cmp.Or(strings.TrimSuffix(uri, "/"), "/")}, nil
	case strings.HasPrefix(uri, "/dev/"):
		return Image{Type: "block", Name: uri}, nil
	case strings.HasPrefix(uri, "/"):
		return Image{Type: "file", Name: uri}, nil
	case slices.Contains(ofHosts, kind):
		return Image{Type: kind, Name: name}, nil
	case kind == "rbd":
		return Image{Type: "network", Protocol: "rbd", Name: name}, nil
	case !isNetwork:
		return Image{}, fmt.Errorf("%q is no uri of an image, such as /srv/disk.img, rbd:pool/image or iscsi://192.0.2.1:3260/iqn.2020-01."+
			"org.example:a/1", uri)
	}
	i, err := parseNetworkURI(scheme, rest)
	if err != nil {
		return Image{}, fmt.Errorf("%q is no uri of an image: %w", uri, err)
	}
	return i, nil
}

func parseNetworkURI(scheme, rest string) (Image, error) {
	i := Image{Type: "network"}
	protocol, transport, _ := strings.Cut(scheme, "+")
	i.Protocol, i.TLS = protocol, protocol == "https" || protocol == "nbds"
	if protocol == "nbds" {
		i.Protocol = "nbd"
	}
	i.TLSVerify = i.TLS
	rest, raw, _ := strings.Cut(rest, "?")
	address, name := rest, ""
	if slash := strings.Index(rest, "/"); slash >= 0 {
		address, name = rest[:slash], rest[slash:]
	}
	server, err := parseHostPort(address)
	if err != nil {
		return Image{}, err
	}
	if i.Name, err = url.PathUnescape(name); err != nil {
		return Image{}, err
	}
	if !slices.Contains(absolute, i.Protocol) {
		i.Name = strings.TrimPrefix(i.Name, "/")
	}
	if i.Protocol == "http" || i.Protocol == "https" {
		i.Query = raw
	} else if query, err := url.ParseQuery(raw); err != nil {
		return Image{}, err
	} else {
		i.User, i.Group, server.Socket = query.Get("uid"), query.Get("gid"), query.Get("socket")
	}
	if server.Transport = transport; address != "" || transport != "" {
		i.Servers = []Server{server}
	}
	return i, nil
}

// ParseServer parses what Server.String returns.
func ParseServer(text string) (Server, error) {
	transport, address, has := strings.Cut(text, "://")
	switch {
	case !has:
		return parseHostPort(text)
	case transport == "unix":
		return Server{Transport: transport, Socket: address}, nil
	}
	s, err := parseHostPort(address)
	s.Transport = transport
	return s, err
}

func parseHostPort(address string) (s Server, err error) {
	host := address
	if !strings.HasSuffix(address, "]") && strings.Contains(address, ":") {
		var port string
		if host, port, err = net.SplitHostPort(address); err != nil {
			return s, err
		}
		number, err := strconv.ParseInt(port, 10, 64)
		if err != nil {
			return s, errors.New("its port is no number")
		}
		s.Port = &number
	}
	s.Host, err = url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return s, err
}
