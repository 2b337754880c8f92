package domainxml

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unsupported is what a domain has beside the machine that it is.
func unsupported(t *testing.T, text string) []string {
	t.Helper()
	d := domain(t, text)
	m, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	names, err := d.Unsupported(m)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestUnsupported_NamesElementsWithoutAttribute(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing": {"<domain><name>a</name><os><type>hvm</type></os></domain>", nil},
		"what libvirt writes by itself": {`<domain type='kvm'><name>a</name><resource><partition>/machine</partition></resource><clock offset='utc'/>
			<on_crash>destroy</on_crash><devices><emulator>/usr/bin/qemu</emulator><controller type='usb'/><serial type='pty'/>
			<console type='pty'><target type='serial' port='0'/></console><input type='mouse' bus='ps2'/><audio id='1' type='none'/>
			<memballoon model='virtio'/></devices></domain>`, nil},
		"tuning and commands": {`<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><name>a</name>
			<cputune><shares>2</shares></cputune><numatune><memory mode='strict'/></numatune>
			<qemu:commandline><qemu:arg value='-s'/></qemu:commandline></domain>`, []string{"qemu:commandline"}},
		"devices": {
			`<domain type='kvm'><name>a</name><devices><hostdev mode='subsystem' type='usb'/><hostdev mode='subsystem' type='usb'/>
			<sound model='ich9'/><shmem name='a'/><channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel></devices>
			</domain>`,
			[]string{"shmem"},
		},
		"devices that were given as XML, without the record of it": {
			`<domain><devices><sound model='ich9'><alias name='ua-xml-0'/></sound></devices></domain>`, []string{"sound"},
		},
		"a channel that is not the agent's": {`<domain><devices><channel type='pty'><target type='virtio' name='com.redhat.spice.0'/></channel>
			</devices></domain>`, []string{"channel"}},
		"what runs": {`<domain><sysinfo type='fwcfg'><entry name='opt/io.virtclaim/run'>e30=</entry></sysinfo></domain>`, nil},
		"what runs, and more": {`<domain><sysinfo type='fwcfg'><entry name='opt/io.virtclaim/run'>e30=</entry>
			<entry name='opt/com.example/theirs'>x</entry><entry name='opt/a' file='/srv/a'/></sysinfo></domain>`, nil},
		"a second one": {
			`<domain><devices><serial type='pty'/><serial type='pty'/><graphics type='vnc'/></devices></domain>`,
			[]string{"all but the first serial"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, unsupported(t, c.text)); diff != "" {
				t.Errorf("unexpected names (-want +got):\n%s", diff)
			}
		})
	}
}
