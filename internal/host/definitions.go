package host

import (
	"sync"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// definitionTime is how long the definitions of a domain count at most: libvirt has no event for some changes of a stored definition.
const definitionTime = 30 * time.Second

// fewDomains is how many domains are read again in each list: to subscribe takes as many calls.
const fewDomains = 8

// definitionEvents are the events of domains whose definitions have changed.
var definitionEvents = []libvirt.DomainEventID{
	libvirt.DomainEventIDLifecycle, libvirt.DomainEventIDBlockJob, libvirt.DomainEventIDDiskChange, libvirt.DomainEventIDTrayChange,
	libvirt.DomainEventIDDeviceRemoved, libvirt.DomainEventIDDeviceAdded, libvirt.DomainEventIDMetadataChange,
}

// listed is a domain as a list shows it.
type listed struct {
	libvirt.Domain
	transient, saved bool
}

// definitions is what one connection keeps for lists of domains, see decision 0031.
type definitions struct {
	domains kept[libvirt.UUID, listed, Domain]

	mu sync.Mutex
	// subscribed tells that the events of domains arrive. Before, and where that is not possible, nothing is kept.
	subscribed, tried bool
}

// isSubscribed subscribes to the events of all domains, once.
func (d *definitions) isSubscribed(l *libvirt.Libvirt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.tried {
		_, err := pipelined(definitionEvents, func(id libvirt.DomainEventID) (int32, error) {
			return l.ConnectDomainEventCallbackRegisterAny(int32(id), nil)
		})
		d.tried, d.subscribed = true, err == nil
	}
	return d.subscribed
}
