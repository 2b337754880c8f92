package host

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"libvirt.org/go/libvirtxml"
)

const someCapabilities = `<domainCapabilities>
  <domain>kvm</domain><machine>pc-q35-7.2</machine><arch>x86_64</arch><vcpu max='288'/>
  <os supported='yes'><enum name='firmware'><value>efi</value></enum>
    <loader supported='yes'><enum name='secure'><value>no</value></enum></loader></os>
  <cpu>
    <mode name='host-passthrough' supported='no'/>
    <mode name='host-model' supported='yes'><model fallback='forbid'>EPYC</model><vendor>AMD</vendor>
      <feature policy='disable' name='vme'/></mode>
    <mode name='custom' supported='yes'><model usable='yes'>qemu64</model><model usable='no'>Haswell</model></mode>
  </cpu>
  <devices>
    <disk supported='yes'><enum name='diskDevice'><value>disk</value></enum><enum name='bus'><value>sata</value></enum></disk>
    <tpm supported='no'><enum name='model'><value>tpm-tis</value></enum></tpm>
  </devices>
</domainCapabilities>`

func TestDomainCapabilities_Parse(t *testing.T) {
	var caps libvirtxml.DomainCaps
	if err := caps.Unmarshal(someCapabilities); err != nil {
		t.Fatal(err)
	}
	for domainType, models := range map[string][]string{"kvm": {"qemu64"}, "qemu": {"qemu64", "Haswell"}} {
		caps.Domain = domainType
		want := DomainCapabilities{
			Hardware: Hardware{Arch: "x86_64", Type: "pc-q35-7.2", DomainType: domainType}, MaxVCPUs: 288,
			CPUModes: []string{"host-model", "custom"}, CPUModels: models, Firmware: []string{"efi"},
			DiskDevices: []string{"disk"}, DiskBuses: []string{"sata"}, HostModel: `<cpu match="exact" mode="custom">
  <model fallback="forbid">EPYC</model>
  <vendor>AMD</vendor>
  <feature policy="disable" name="vme"></feature>
</cpu>`,
		}
		if diff := cmp.Diff(want, domainCapabilities(caps)); diff != "" {
			t.Errorf("of %s (-want +got):\n%s", domainType, diff)
		}
	}
}

func TestDomainCapabilities_UnsupportedIsNamed(t *testing.T) {
	caps := libvirtxml.Caps{
		Host: libvirtxml.CapsHost{CPU: &libvirtxml.CapsHostCPU{Arch: "x86_64"}},
		Guests: []libvirtxml.CapsGuest{{OSType: "hvm", Arch: libvirtxml.CapsGuestArch{
			Name:     "x86_64",
			Machines: []libvirtxml.CapsGuestMachine{{Name: "pc", Canonical: "pc-i440fx-7.2"}, {Name: "pc-i440fx-7.2"}, {Name: "isapc"}},
			Domains: []libvirtxml.CapsGuestDomain{
				{Type: "qemu"},
				{Type: "kvm", Machines: []libvirtxml.CapsGuestMachine{{Name: "q35", Canonical: "pc-q35-7.2"}}},
			},
		}}},
	}
	for _, c := range []struct {
		of   Hardware
		want *CannotEmulateError
	}{
		{Hardware{DomainType: "qemu"}, nil},
		{Hardware{Arch: "x86_64", Type: "pc-i440fx-7.2", DomainType: "qemu"}, nil},
		{Hardware{Type: "q35", DomainType: "kvm"}, nil},
		{Hardware{Arch: "vax"}, &CannotEmulateError{"arch", "vax", []string{"x86_64"}}},
		{Hardware{DomainType: "xen"}, &CannotEmulateError{"domain_type", "xen", []string{"kvm", "qemu"}}},
		{Hardware{Type: "q35", DomainType: "qemu"}, &CannotEmulateError{"type", "q35", []string{"pc"}}},
		{Hardware{Type: "pc", DomainType: "kvm"}, &CannotEmulateError{"type", "pc", []string{"q35"}}},
	} {
		var got *CannotEmulateError
		errors.As(missing(caps, c.of), &got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.of, diff)
		}
	}
}
