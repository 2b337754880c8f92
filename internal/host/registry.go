package host

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// Config is the configuration of a host.
type Config struct {
	// URI is libvirt's connection URI.
	URI string
	// Node is the Kubernetes node that corresponds to the host; empty is the host's key.
	Node string
	// Kubelet is the root directory of the host's kubelet; empty is kubelet's default.
	Kubelet string
	// Storage are the host's storage pools by usage type; empty if not configured.
	Storage map[string]string
	// MigrationURI is the URI by which the libvirtd of another host connects to this one, for migrations peer to peer; empty for migrations
	// through this process. MigrationAddress is the name or address that QEMU of another host connects to; empty is this host's own name.
	MigrationURI, MigrationAddress string
	// ConnectTimeout limits how long the host may take to accept a connection; 0 is ten seconds.
	ConnectTimeout time.Duration
}

// Registry has the hosts of one configuration, by key.
type Registry struct {
	hosts   map[string]*Host
	configs map[string]Config

	meeting sync.Mutex
	met     map[identity]string
}

// identity identifies a libvirtd.
type identity struct{ uuid, name, uri string }

// NewRegistry opens no connection. Every URI must be accepted by ValidateURI; others fail when they are dialled.
func NewRegistry(configs map[string]Config) *Registry {
	f := &Registry{hosts: map[string]*Host{}, configs: configs, met: map[identity]string{}}
	for key, c := range configs {
		uri, err := url.Parse(c.URI)
		if err != nil {
			uri = &url.URL{Scheme: "invalid"}
		}
		timeout := cmp.Or(c.ConnectTimeout, dialTimeout)
		f.hosts[key] = &Host{Key: key, uri: uri, timeout: timeout, registry: f, events: watcher{uri: uri, timeout: timeout}}
	}
	return f
}

// Host returns the host of that key; the error of an unknown key lists the known ones.
func (f *Registry) Host(key string) (*Host, error) {
	if h, ok := f.hosts[key]; ok {
		return h, nil
	}
	if len(f.hosts) == 0 {
		return nil, fmt.Errorf("the provider has no hosts, so there is no host %q: add it to hosts in the provider's configuration", key)
	}
	return nil, fmt.Errorf("the provider has no host %q; its hosts are %s", key, strings.Join(f.Keys(), ", "))
}

// Keys returns the hosts' keys, sorted.
func (f *Registry) Keys() []string { return slices.Sorted(maps.Keys(f.hosts)) }

// Node is the Kubernetes node that corresponds to a host.
func (f *Registry) Node(key string) string { return cmp.Or(f.configs[key].Node, key) }

// Kubelet is the root directory of the kubelet of a host.
func (f *Registry) Kubelet(key string) string {
	return cmp.Or(f.configs[key].Kubelet, "/var/lib/kubelet")
}

// Storage are the storage pools of a host by usage type.
func (f *Registry) Storage(key string) map[string]string { return f.configs[key].Storage }

// Close closes all connections.
func (f *Registry) Close() {
	for _, h := range f.hosts {
		h.close()
	}
}

// meet refuses a second key for the same libvirtd, because one machine would count as two.
func (f *Registry) meet(key string, uri *url.URL, l *libvirt.Libvirt) error {
	id, err := identify(uri, l)
	if err != nil {
		return err
	}
	f.meeting.Lock()
	defer f.meeting.Unlock()
	if other, known := f.met[id]; known && other != key {
		return fmt.Errorf("hosts %s and %s are the same libvirt (host %s); remove one of them", other, key, id.name)
	}
	f.met[id] = key
	return nil
}

func identify(uri *url.URL, l *libvirt.Libvirt) (identity, error) {
	var name string
	var text []byte
	err := together(
		func() (err error) {
			if name, err = l.ConnectGetHostname(); err != nil {
				err = fmt.Errorf("ask for the host's name: %w", err)
			}
			return err
		},
		func() (err error) {
			if text, err = l.Capabilities(); err != nil {
				err = fmt.Errorf("ask for the host's capabilities: %w", err)
			}
			return err
		})
	if err != nil {
		return identity{}, err
	}
	var caps struct {
		UUID string `xml:"host>uuid"`
	}
	if err := xml.Unmarshal(text, &caps); err != nil {
		return identity{}, fmt.Errorf("read the host's capabilities: %w", err)
	}
	return identity{caps.UUID, name, string(libvirt.RemoteURI(uri))}, nil
}
