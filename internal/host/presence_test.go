package host

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// The procedures of pools, networks and domains, from src/remote/remote_protocol.x.
const (
	procDomainCreate     = 9
	procDomainXML        = 14
	procNetworkLookup    = 46
	procVolumeCreate     = 93
	procVolumeDelete     = 94
	procNetworkIsActive  = 152
	procPoolIsActive     = 154
	procDomainAttachWith = 160
)

// failure is the body of an error of libvirt.
func failure(code libvirt.ErrorNumber, message string) []byte {
	body := binary.BigEndian.AppendUint32(nil, uint32(code))
	body = append(body, 0, 0, 0, 0, 0, 0, 0, 1) // its domain, and that there is a message
	body = binary.BigEndian.AppendUint32(body, uint32(len(message)))
	body = append(body, message...)
	return append(body, make([]byte, (4-len(message)%4)%4+4)...)
}

func encoded(s string) []byte {
	body := append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...)
	return append(body, make([]byte, (4-len(s)%4)%4)...)
}

// invalidDaemon refuses each change as invalid, whether pool and network are active or not.
func invalidDaemon(active byte) *daemon {
	d := volumeDaemon()
	for _, procedure := range []uint32{procDomainCreate, procVolumeCreate, procVolumeDelete, procDomainAttachWith} {
		d.errors[procedure] = failure(libvirt.ErrOperationInvalid, "refused")
	}
	d.answers[procPoolIsActive], d.answers[procNetworkIsActive] = []byte{0, 0, 0, active}, []byte{0, 0, 0, active}
	d.answers[procNetworkLookup] = append(encoded("lan"), make([]byte, 16)...)
	d.answers[procDomainXML] = encoded("<domain><devices><interface type='network'><source network='lan'/></interface></devices></domain>")
	return d
}

// libvirt has one code for all invalid operations: only whether the object is active tells what to do.
func TestError_InactivePoolOrNetworkHasRemedy(t *testing.T) {
	const id = "6b6e0b7c-0000-4000-8000-000000000000"
	for name, c := range map[string]struct {
		do     func(*Host) error
		remedy string
	}{
		"a volume is made": {func(h *Host) error {
			return h.CreateVolume(t.Context(), "ssd", libvirtxml.StorageVolume{Name: "root"}, false)
		}, "virsh pool-start 'ssd'"},
		"a volume is deleted": {func(h *Host) error { return h.DeleteVolume(t.Context(), "ssd", "root") }, "virsh pool-start 'ssd'"},
		"a domain is started": {func(h *Host) error { return h.Start(t.Context(), id) }, "virsh net-start 'lan'"},
		"an interface is plugged in": {func(h *Host) error {
			return h.Attach(t.Context(), id, `<interface type="network"><source network="lan"></source></interface>`)
		}, "virsh net-start 'lan'"},
	} {
		for _, active := range []byte{0, 1} {
			err := c.do(invalidDaemon(active).connected(t))
			if !isCode(err, libvirt.ErrOperationInvalid) || strings.Contains(err.Error(), c.remedy) == (active == 1) {
				t.Errorf("%s (active: %d): %v", name, active, err)
			}
			if exists := name == "a volume is made" && active == 1; errors.Is(err, ErrExists) != exists {
				t.Errorf("%s (active: %d): whether it exists is wrong: %v", name, active, err)
			}
		}
	}
}

func TestPresence_OfPoolAndNetwork(t *testing.T) {
	for want, change := range map[Presence]func(*daemon){
		Active:   func(d *daemon) { *d = *invalidDaemon(1) },
		Inactive: func(*daemon) {},
		Missing: func(d *daemon) {
			d.errors[procPoolLookup], d.errors[procNetworkLookup] = failure(libvirt.ErrNoStoragePool, "none"), failure(libvirt.ErrNoNetwork, "none")
		},
		"": func(d *daemon) {
			d.errors[procPoolLookup], d.errors[procNetworkLookup] = failure(libvirt.ErrAccessDenied, "no"), failure(libvirt.ErrAccessDenied, "no")
		},
	} {
		d := invalidDaemon(0)
		change(d)
		h := d.connected(t)
		pool, poolErr := h.Presence(t.Context(), StoragePool, "ssd")
		network, networkErr := h.Presence(t.Context(), Network, "lan")
		if pool != want || network != want || slices.Contains([]bool{poolErr != nil, networkErr != nil}, want != "") {
			t.Errorf("%q: pool %q, %v; network %q, %v", want, pool, poolErr, network, networkErr)
		}
	}
}
