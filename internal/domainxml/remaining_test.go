package domainxml

import (
	"strings"
	"testing"
)

// Removing an attribute removes the one device that it describes, and keeps other devices of that kind in a machine defined outside of
// Terraform, also in repeated updates.
func TestUpdate_RemovesOnlyDescribedDevice(t *testing.T) {
	const byHand = `<domain type='qemu'><name>theirs</name><memory unit='KiB'>131072</memory><devices>
		<serial type='pty'><target port='0'/></serial><serial type='file'><source path='/second'/><target port='1'/></serial>
		<console type='pty'><target type='serial' port='0'/></console>
		<console type='pty'><target type='virtio' port='1'/></console><console type='file'><source path='/third'/><target type='virtio' port='2'/></console>
		<graphics type='vnc' port='-1' autoport='yes'/><graphics type='spice' port='-1' autoport='yes'/>
		<video><model type='qxl' ram='1'/></video><video><model type='bochs'/></video>
		<watchdog model='i6300esb' action='reset'/><watchdog model='diag288' action='pause'/>
		<rng model='virtio'><backend model='random'>/dev/hwrng</backend></rng>
		<rng model='virtio'><backend model='egd' type='unix'><source mode='connect' path='/egd'/></backend></rng>
		<rng model='virtio'><backend model='random'>/dev/urandom</backend></rng></devices></domain>`
	is, err := Parse(byHand)
	if err != nil || is.Serial == nil || is.Console == nil || is.Graphics == nil || is.Video == nil || is.Watchdog == nil || is.RNG == nil {
		t.Fatalf("%+v, %v", is, err)
	}
	want := Machine{Name: is.Name, DomainType: is.DomainType, Memory: is.Memory, VCPUs: is.VCPUs, Metadata: Metadata{Phase: Ready}}
	text := byHand
	for range 2 {
		if text, err = domain(t, text).Update(want); err != nil {
			t.Fatal(err)
		}
		for _, kept := range []string{"/second", "/third", `type="spice"`, "bochs", "diag288", "/egd", "/dev/urandom"} {
			if !strings.Contains(text, kept) {
				t.Errorf("%s is gone", kept)
			}
		}
		for _, gone := range []string{`<serial type="pty"`, `port="0"`, `type="virtio" port="1"`, `type="vnc"`, "qxl", "i6300esb", "/dev/hwrng"} {
			if strings.Contains(text, gone) {
				t.Errorf("%s is there still", gone)
			}
		}
	}
	is, err = Parse(text)
	if err != nil || is.Serial != nil || is.Console != nil || is.Graphics != nil || is.Video != nil || is.Watchdog != nil || is.RNG != nil {
		t.Errorf("what was left is read: %+v, %v", is, err)
	}
	want.RNG, want.Graphics = &RNG{Source: "/dev/random"}, &Graphics{Type: VNC, Listen: "::1"}
	if text, err = domain(t, text).Update(want); err != nil {
		t.Fatal(err)
	}
	is, err = Parse(text)
	if err != nil || is.RNG == nil || *is.RNG != *want.RNG || is.Graphics == nil || is.Graphics.Type != VNC || is.Serial != nil {
		t.Errorf("what is wanted again is %+v, %+v, %v", is.RNG, is.Graphics, err)
	}
}
