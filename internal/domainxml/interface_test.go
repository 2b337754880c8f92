package domainxml

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func everyInterface() map[string]Interface {
	return map[string]Interface{
		"bridge": {Bridge: "br0", Model: "e1000", MAC: "52:54:00:00:00:01", Down: true, MTU: 9000},
		"direct": {Direct: Direct{"eth0", "bridge"}, Model: "virtio", MAC: "52:54:00:00:00:02", VirtualPort: &VirtualPort{Type: "802.1Qbh", ProfileID: "web"}},
		"fast": {
			Bridge: "br0", Model: "virtio", MAC: "52:54:00:00:00:06", Driver: InterfaceDriver{"qemu", 4, 1024}, Inbound: Bandwidth{1000, 2000, 512}, Outbound: Bandwidth{Average: 100},
		},
		"lan": {
			Network: "default", PortGroup: "staff", Model: "virtio", MAC: "52:54:00:00:00:03", BootOrder: 1,
			VLAN: &VLAN{Tags: []uint{7}, Trunk: true},
		},
		"switch": {
			Bridge: "ovs", Model: "virtio", MAC: "52:54:00:00:00:04", VLAN: &VLAN{Tags: []uint{7, 9}},
			VirtualPort: &VirtualPort{Type: "openvswitch", InterfaceID: "09b11c53-8b5c-4eeb-8f00-d84eaa0aaa4f"},
		},
		"user": {User: true, Model: "virtio", MAC: "52:54:00:00:00:05"},
	}
}

// domainWithInterfaces returns a running domain of virtclaim's with interfaces as libvirt shows them.
func domainWithInterfaces(interfaces ...string) string {
	return `<domain type='kvm' id='1'><name>web</name><metadata><machine xmlns='` + Namespace + `' owner='prod' phase='ready'/></metadata>
		<os><type>hvm</type></os><devices>` + strings.Join(interfaces, "") + `</devices></domain>`
}

// nic returns an interface of a running domain; an empty key is for one without a key of virtclaim's.
func nic(kind, source, mac, key, more string) string {
	alias := "net0"
	if key != "" {
		alias = interfaceAlias + key
	}
	return fmt.Sprintf(`<interface type='%s'><mac address='%s'/><source %s/><target dev='vnet0'/><model type='virtio'/>%s<alias name='%s'/>`+
		`<address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x0'/></interface>`, kind, mac, source, more, alias)
}

const firstMAC, secondMAC = "52:54:00:00:00:01", "52:54:00:00:00:02"

func TestInterface_MinimalChange(t *testing.T) {
	lan := Interface{Network: "default", Model: "virtio", MAC: firstMAC}
	with := func(change func(*Interface)) Interface {
		i := lan
		change(&i)
		return i
	}
	onNetwork := nic("network", "network='default' portid='x' bridge='virbr0'", firstMAC, "lan", "")
	switched := func(change func(*VirtualPort)) Interface {
		p := VirtualPort{Type: "802.1Qbh", ProfileID: "web"}
		change(&p)
		return Interface{Direct: Direct{"eth0", "bridge"}, Model: "virtio", MAC: firstMAC, VirtualPort: &p}
	}
	const port = "<virtualport type='802.1Qbh'><parameters profileid='web'/></virtualport>"
	onDevice := nic("direct", "dev='eth0' mode='bridge'", firstMAC, "lan", port)
	tagged := func(more string, tags ...uint) Interface {
		return Interface{Bridge: "br0", Model: "virtio", MAC: firstMAC, VLAN: &VLAN{Tags: tags, Trunk: more != ""}}
	}
	const limit = "<bandwidth><inbound average='9' floor='5'/></bandwidth>"
	onLimit := nic("bridge", "bridge='br0'", firstMAC, "lan", limit)
	onTags := nic("bridge", "bridge='br0'", firstMAC, "lan", "<vlan><tag id='4'/></vlan>")
	for name, c := range map[string]struct {
		live                 string
		want                 Interface
		unplug, change, plug string
	}{
		"the same":                         {live: onNetwork, want: lan},
		"an address that nobody asked for": {live: onNetwork, want: with(func(i *Interface) { i.MAC = "" })},
		"a network on a bridge of the host": {
			live: nic("bridge", "network='default' portid='x' bridge='br0'", firstMAC, "lan", "<mtu size='9000'/><vlan><tag id='4'/></vlan>"), want: lan,
		},
		"a network on a device of the host": {
			live: nic("direct", "network='default' portid='x' dev='eth0' mode='vepa'", firstMAC, "lan", ""), want: lan,
		},
		"tags, a port and a size that a network may have given": {
			live: nic("network", "network='default'", firstMAC, "lan", "<mtu size='9000'/><vlan><tag id='4'/></vlan>"+port), want: lan,
		},
		"the same tags":   {live: onTags, want: tagged("", 4)},
		"another tag":     {live: onTags, want: tagged("", 5), change: "lan"},
		"a trunk":         {live: onTags, want: tagged("trunk", 4), change: "lan"},
		"no tag any more": {live: onTags, want: Interface{Bridge: "br0", Model: "virtio", MAC: firstMAC}, change: "lan"},
		"the same port":   {live: onDevice, want: switched(func(*VirtualPort) {})},
		"a port of another kind": {
			live: onDevice, want: switched(func(p *VirtualPort) { *p = VirtualPort{Type: "openvswitch"} }), unplug: "lan",
		},
		"a port of another id":      {live: onDevice, want: switched(func(p *VirtualPort) { p.InterfaceID = "x" }), unplug: "lan"},
		"a port of another profile": {live: onDevice, want: switched(func(p *VirtualPort) { p.ProfileID = "db" }), unplug: "lan"},
		"a port whose id is left to libvirt": {
			live: nic("bridge", "bridge='ovs'", firstMAC, "lan", "<virtualport type='openvswitch'><parameters interfaceid='x'/></virtualport>"),
			want: Interface{Bridge: "ovs", Model: "virtio", MAC: firstMAC, VirtualPort: &VirtualPort{Type: "openvswitch"}},
		},
		"no port any more": {
			live: onDevice, want: Interface{Direct: Direct{"eth0", "bridge"}, Model: "virtio", MAC: firstMAC}, unplug: "lan",
		},
		"another device of the host":            {live: onDevice, want: with(func(i *Interface) { i.Network, i.Direct = "", Direct{"eth1", "bridge"} }), unplug: "lan"},
		"another mode of it":                    {live: onDevice, want: with(func(i *Interface) { i.Network, i.Direct = "", Direct{"eth0", "vepa"} }), unplug: "lan"},
		"another port group":                    {live: onNetwork, want: with(func(i *Interface) { i.PortGroup = "staff" }), change: "lan"},
		"one that virtclaim has not named":      {live: nic("network", "network='default'", firstMAC, "", ""), want: lan},
		"a limit":                               {live: onNetwork, want: with(func(i *Interface) { i.Outbound.Average = 9 }), change: "lan"},
		"the same limit":                        {live: onLimit, want: Interface{Bridge: "br0", Model: "virtio", MAC: firstMAC, Inbound: Bandwidth{Average: 9}}},
		"another limit":                         {live: onLimit, want: Interface{Bridge: "br0", Model: "virtio", MAC: firstMAC, Inbound: Bandwidth{Average: 9, Peak: 10}}, change: "lan"},
		"no limit any more":                     {live: onLimit, want: Interface{Bridge: "br0", Model: "virtio", MAC: firstMAC}, change: "lan"},
		"a limit that a network may have given": {live: nic("network", "network='default'", firstMAC, "lan", limit), want: lan},
		"queues, which wait":                    {live: onNetwork, want: with(func(i *Interface) { i.Driver.Queues = 2 })},
		"link down":                             {live: onNetwork, want: with(func(i *Interface) { i.Down = true }), change: "lan"},
		"another network":                       {live: onNetwork, want: with(func(i *Interface) { i.Network = "other" }), change: "lan"},
		"a bridge":                              {live: onNetwork, want: with(func(i *Interface) { i.Network, i.Bridge = "", "br1" }), change: "lan"},
		"QEMU's own network":                    {live: onNetwork, want: with(func(i *Interface) { i.Network, i.User = "", true }), unplug: "lan"},
		"another model":                         {live: onNetwork, want: with(func(i *Interface) { i.Model = "e1000" }), unplug: "lan"},
		"another address":                       {live: onNetwork, want: with(func(i *Interface) { i.MAC = secondMAC }), unplug: "lan"},
		"another size":                          {live: onNetwork, want: with(func(i *Interface) { i.MTU = 1400 }), unplug: "lan"},
		"one that is booted from": {
			live: nic("network", "network='default'", firstMAC, "lan", "<boot order='1'/>"), want: with(func(i *Interface) { i.Model = "e1000" }),
		},
		"one too many": {live: onNetwork + nic("bridge", "bridge='br0'", secondMAC, "", ""), want: lan, unplug: "net1"},
		"none yet":     {want: lan, plug: "lan"},
		"a kind that is not modelled": {
			live: onNetwork + nic("ethernet", "dev='x'", secondMAC, "", ""), want: lan,
		},
	} {
		t.Run(name, func(t *testing.T) {
			todo, err := domain(t, domainWithInterfaces(c.live)).DiffInterfaces(Machine{Interfaces: map[string]Interface{"lan": c.want}})
			if err != nil {
				t.Fatal(err)
			}
			got := [3]string{keysOf(todo.Unplug), keysOf(todo.Change), strings.Join(todo.Plug, " ")}
			if want := [3]string{c.unplug, c.change, c.plug}; got != want {
				t.Errorf("unplug, change, plug: got %q, want %q", got, want)
			}
		})
	}
}

func keysOf(wires []InterfaceChange) string {
	var keys []string
	for _, w := range wires {
		keys = append(keys, w.Key)
	}
	return strings.Join(keys, " ")
}

func TestInterface_ChangeKeepsDevice(t *testing.T) {
	live := domainWithInterfaces(nic("network", "network='default' portid='x' bridge='virbr0'", firstMAC, "lan", ""))
	todo, err := domain(t, live).DiffInterfaces(Machine{Interfaces: map[string]Interface{"lan": {Bridge: "br1", Model: "virtio", MAC: firstMAC, Down: true}}})
	if err != nil || len(todo.Change) != 1 {
		t.Fatalf("%+v, %v", todo, err)
	}
	for _, part := range []string{`type="bridge"`, `bridge="br1"`, firstMAC, `state="down"`, `bus="0x01"`, `name="ua-net-lan"`} {
		if !strings.Contains(todo.Change[0].Element, part) {
			t.Errorf("%s is missing in %s", part, todo.Change[0].Element)
		}
	}
	if strings.Contains(todo.Change[0].Element, "portid") {
		t.Errorf("it is still on the old network: %s", todo.Change[0].Element)
	}
}

func TestInterface_PluggedAtStoredAddressIfFree(t *testing.T) {
	stored := domainWithInterfaces(nic("bridge", "bridge='br0'", firstMAC, "lan", "<boot order='1'/>"))
	free, err := domain(t, domainWithInterfaces()).PlugInterface(domain(t, stored), "lan")
	if err != nil || !strings.Contains(free, "<address") || strings.Contains(free, "<boot") {
		t.Errorf("it is not at its place, or boots: %s, %v", free, err)
	}
	taken, err := domain(t, domainWithInterfaces(nic("bridge", "bridge='br0'", secondMAC, "old", ""))).PlugInterface(domain(t, stored), "lan")
	if err != nil || strings.Contains(taken, "<address type") {
		t.Errorf("it is at a place that another one has: %s, %v", taken, err)
	}
}

func TestInterface_InsertKeepsOthers(t *testing.T) {
	stored := domainWithInterfaces(
		nic("bridge", "bridge='br0'", firstMAC, "web", ""), nic("ethernet", "dev='x'", "52:54:00:00:00:09", "", ""),
		nic("bridge", "bridge='br1'", secondMAC, "", ""))
	m, err := Parse(stored)
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(m.Interfaces)); !slices.Equal(got, []string{"net2", "web"}) {
		t.Fatalf("the interfaces are %v", got)
	}
	is := m
	m.Interfaces = map[string]Interface{
		"a": {User: true, Model: "virtio"}, "web": {Bridge: "br0", Model: "virtio"}, "net2": m.Interfaces["net2"],
	}
	next := 0
	text, err := domain(t, stored).Update(m.WithMACs(is, func() string { next++; return fmt.Sprintf("52:54:00:00:00:%02d", next) }))
	if err != nil {
		t.Fatal(err)
	}
	d, err := Unmarshal(text)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, i := range d.Devices.Interfaces {
		order = append(order, i.Alias.Name+" "+i.MAC.Address)
	}
	want := []string{"ua-net-web " + firstMAC, "net0 52:54:00:00:00:09", "ua-net-net2 " + secondMAC, "ua-net-a 52:54:00:00:00:03"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("the interfaces are not what they were and a new one with a free address (-want +got):\n%s", diff)
	}
}

func TestInterface_LiveChangesAreDrift(t *testing.T) {
	lan := Interface{Network: "default", Model: "virtio", MAC: firstMAC}
	byHand := Interface{Bridge: "br0", Model: "virtio", MAC: secondMAC}
	down, booting := lan, lan
	down.Down, booting.BootOrder = true, 1
	for name, c := range map[string]struct {
		stored map[string]Interface
		live   string
		want   map[string]Interface
	}{
		"missing":         {map[string]Interface{"lan": lan}, domainWithInterfaces(), map[string]Interface{"lan": {Model: "virtio", MAC: firstMAC}}},
		"added by hand":   {nil, domainWithInterfaces(nic("bridge", "bridge='br0'", secondMAC, "", "")), map[string]Interface{"net0": byHand}},
		"stored by hand":  {map[string]Interface{"net0": byHand}, domainWithInterfaces(nic("bridge", "bridge='br0'", secondMAC, "", "")), map[string]Interface{"net0": byHand}},
		"link not set":    {map[string]Interface{"lan": down}, domainWithInterfaces(nic("network", "network='default'", firstMAC, "lan", "")), map[string]Interface{"lan": {Model: "virtio", MAC: firstMAC}}},
		"not stored":      {nil, domainWithInterfaces(nic("network", "network='default'", firstMAC, "lan", "")), map[string]Interface{"lan": {Model: "virtio", MAC: firstMAC}}},
		"order not yet":   {map[string]Interface{"lan": booting}, domainWithInterfaces(nic("network", "network='default'", firstMAC, "lan", "")), map[string]Interface{"lan": booting}},
		"booted from":     {nil, domainWithInterfaces(nic("network", "network='default'", firstMAC, "lan", "<boot order='1'/>")), nil},
		"network's extra": {map[string]Interface{"lan": lan}, domainWithInterfaces(nic("network", "network='default'", firstMAC, "lan", "<mtu size='9000'/>")), map[string]Interface{"lan": lan}},
	} {
		t.Run(name, func(t *testing.T) {
			m := Machine{Interfaces: c.stored, Metadata: Metadata{Phase: Ready}}
			if err := m.Compare(domain(t, c.live)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, m.Interfaces); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestInterface_NetworkDefaultsNeedRestart(t *testing.T) {
	tagged := Interface{Network: "ovs", VLAN: &VLAN{Tags: []uint{10}}}
	for name, c := range map[string]struct {
		was, want Interface
		pending   []string
	}{
		"the same":          {tagged, tagged, nil},
		"no tags":           {tagged, Interface{Network: "ovs"}, []string{"interface lan"}},
		"no MTU":            {Interface{Network: "ovs", MTU: 9000}, Interface{Network: "ovs"}, []string{"interface lan"}},
		"no limit":          {Interface{Network: "ovs", Inbound: Bandwidth{Average: 9}}, Interface{Network: "ovs"}, []string{"interface lan"}},
		"limit of a bridge": {Interface{Bridge: "br0", Inbound: Bandwidth{Average: 9}}, Interface{Bridge: "br0"}, nil},
		"another network":   {tagged, Interface{Network: "red"}, nil},
		"tags on a bridge":  {Interface{Bridge: "br0", VLAN: tagged.VLAN}, Interface{Bridge: "br0"}, nil},
		"tags that are new": {Interface{Network: "ovs"}, tagged, nil},
	} {
		got := PendingRemovals(Machine{Interfaces: map[string]Interface{"lan": c.was}}, Machine{Interfaces: map[string]Interface{"lan": c.want}})
		if diff := cmp.Diff(c.pending, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The floor that an interface is guaranteed is kept, and is no limit.
func TestInterface_LimitsKeepFloor(t *testing.T) {
	text := domainWithInterfaces(nic("network", "network='default'", firstMAC, "lan", "<bandwidth><inbound average='9' floor='5'/></bandwidth>"))
	lan := Interface{Network: "default", Model: "virtio", MAC: firstMAC}
	for name, c := range map[string]struct {
		inbound Bandwidth
		want    string
	}{
		"another": {Bandwidth{Average: 8, Peak: 10, Burst: 2}, `<inbound average="8" peak="10" burst="2" floor="5">`}, "none": {Bandwidth{}, `<inbound floor="5">`},
	} {
		m := Machine{Name: "web", Interfaces: map[string]Interface{"lan": lan}}
		i := lan
		i.Inbound = c.inbound
		m.Interfaces["lan"] = i
		after, err := domain(t, text).Update(m)
		if err != nil || !strings.Contains(after, c.want) {
			t.Errorf("%s: %v\n%s", name, err, after)
		}
		if is, err := Parse(after); err != nil || is.Interfaces["lan"] != i {
			t.Errorf("%s is read as %+v, %v", name, is.Interfaces["lan"], err)
		}
	}
}

// Another driver, or number of queues, waits for the next start.
func TestInterface_DriverNeedsRestart(t *testing.T) {
	m := running()
	m.Interfaces = map[string]Interface{"lan": {Bridge: "br0", Model: "virtio", MAC: firstMAC}}
	live := build(t, m)
	m.Interfaces = map[string]Interface{"lan": {Bridge: "br0", Model: "virtio", MAC: firstMAC, Driver: InterfaceDriver{"vhost", 2, 512}}}
	pending, err := domain(t, live).Pending(m)
	if diff := cmp.Diff([]string{"interface lan"}, pending); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	is, err := Parse(build(t, m))
	if err == nil {
		err = is.Compare(domain(t, live))
	}
	if err != nil || is.Interfaces["lan"].Driver != (InterfaceDriver{"vhost", 2, 512}) || !cmp.Equal(is.Pending, []string{"interface lan"}) {
		t.Errorf("%+v, %v", is, err)
	}
}
