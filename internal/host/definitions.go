package host

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/digitalocean/go-libvirt"
)

var (
	// definitionTrust is that of the definitions of domains: libvirt has no event for some changes of a stored one.
	definitionTrust = trust{within: 10 * time.Second}
	// volumeTrust is that of the descriptions of volumes, which other tools change without an event.
	volumeTrust = trust{within: 5 * time.Second}
	// removalTrust is that of the same before something is deleted that a volume may be over.
	removalTrust = trust{within: 2 * time.Second, rest: time.Second}
)

// fewObjects is how many domains or volumes are read again in each list: to subscribe takes as many calls.
const fewObjects = 8

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

// definitions is what one connection keeps for lists, see decision 0031: the definitions of domains, and by their journals, the
// descriptions of volumes.
type definitions struct {
	domains kept[libvirt.UUID, listed, Domain]
	volumes kept[string, libvirt.StorageVol, described]
	// refreshed are those that were read after a refresh of their pools, without which libvirt looks for no backing file.
	refreshed kept[string, libvirt.StorageVol, described]

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

// follows reports whether it has subscribed.
func (d *definitions) follows() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.subscribed
}

// drop is called with the domain of each event: the journal of a volume shows by its events that the volume changes.
func (d *definitions) drop(id libvirt.UUID, name string) {
	d.domains.drop(id)
	d.volumes.drop(name)
	d.refreshed.drop(name)
}

// dropAll is called when the domain of an event is not known.
func (d *definitions) dropAll() {
	d.domains.dropAll()
	d.volumes.dropAll()
	d.refreshed.dropAll()
}

// JournalName is the name of the domain that is the journal of a volume.
func JournalName(pool, name string) string {
	sum := sha256.Sum256([]byte(pool + "\x00" + name))
	return "virtclaim-" + hex.EncodeToString(sum[:8])
}
