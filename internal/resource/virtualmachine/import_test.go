package virtualmachine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

func TestImport_NameWithoutAttribute(t *testing.T) {
	for name, want := range map[string]string{
		"my old vm":  "virsh domrename 'my old vm' 'my-old-vm'",
		"it's\tnew ": `virsh domrename 'it'\''s` + "\t" + `new ' 'it'\''s-new'`,
		" ":          "virsh domrename ' ' 'new-name'",
	} {
		err := checkImportedName("host-a", name)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "terraform import <address> 'host-a/") {
			t.Errorf("%q: got %v, want %s", name, err, want)
		}
	}
	for _, name := range []string{"web", "größe", "it's"} {
		if err := checkImportedName("host-a", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// settings are what a domain may have. What is kept by a replacement is in the definition of the new domain, and what is not is named.
var settings = []struct {
	// in is the element of the base that has the setting; is has its text: an element, or an attribute that begins with a space.
	in, is string
	// lost are the paths that the warning names; "usual" for what libvirt gives to a new domain by itself, empty for what is kept.
	lost string
}{
	{"domain", "<iothreads>4</iothreads>", "iothreads"},
	{"domain", "<iothreadids><iothread id='7'/></iothreadids>", "iothreadids"},
	{"domain", "<seclabel type='none' model='dac'/>", "seclabel"},
	{"domain", "<seclabel type='dynamic' model='dac' relabel='yes'/>", "usual"},
	{"domain", "<on_lockfailure>poweroff</on_lockfailure>", "on_lockfailure"},
	{"domain", "<on_poweroff>restart</on_poweroff>", "on_poweroff"},
	{"domain", "<on_crash>preserve</on_crash>", ""},
	{"domain", "<numatune><memory mode='strict' nodeset='0'/></numatune>", ""},
	{"domain", "<memtune><hard_limit unit='KiB'>99999</hard_limit></memtune>", ""},
	{"domain", "<blkiotune><weight>200</weight></blkiotune>", ""},
	{"domain", "<blkiotune><device><path>/dev/sda</path><weight>300</weight></device></blkiotune>", "blkiotune"},
	{"domain", "<keywrap><cipher name='aes' state='off'/></keywrap>", ""},
	{"domain", "<launchSecurity type='sev'><cbitpos>47</cbitpos><reducedPhysBits>1</reducedPhysBits><policy>0x0003</policy></launchSecurity>", ""},
	{"domain", "<launchSecurity type='sev'><policy>3</policy><session>AAAA</session></launchSecurity>", "launchSecurity"},
	{"domain", "<idmap><uid start='0' target='1000' count='10'/></idmap>", "idmap"},
	{"domain", "<commandline xmlns='http://libvirt.org/schemas/domain/qemu/1.0'><arg value='-s'/></commandline>", "qemu:commandline"},
	{"domain", "<maxMemory slots='4' unit='KiB'>262144</maxMemory>", "maxMemory"},
	{"domain", "<resource><partition>/other</partition></resource>", "resource"},
	{"domain", "<memoryBacking><locked/></memoryBacking>", ""},
	{"domain", "<memoryBacking><hugepages><page size='2048' unit='KiB' nodeset='1'/></hugepages></memoryBacking>", "memoryBacking/hugepages/page"},
	{"domain", "<memoryBacking><source type='file'/></memoryBacking>", "memoryBacking"},
	{"domain", "<cputune><cachetune vcpus='0'><cache id='0' level='3' type='both' size='3' unit='MiB'/></cachetune></cputune>", ""},
	{"domain", "<cputune><vcpupin vcpu='0' cpuset='0'/></cputune>", ""},
	{"domain", "<cpu><numa><cell id='0' cpus='0' memory='65536' unit='KiB'/></numa></cpu>", ""},
	{"domain", "<cpu mode='host-passthrough' migratable='off'/>", "cpu/@migratable"},
	{"domain", "<cpu mode='host-passthrough' check='none' migratable='on'/>", "usual"},
	{"domain", "<cpu mode='maximum' migratable='on'/>", "cpu/@migratable"},
	{"domain", "<cpu mode='custom' match='exact' check='none'><model fallback='forbid'>qemu64</model></cpu>", "usual"},
	{"domain", "<cpu mode='custom' match='exact'><model fallback='forbid'>Haswell</model><vendor>Intel</vendor></cpu>", "cpu"},
	{"vcpu", " cpuset='0-1'", "vcpu/@cpuset"},
	{"memory", " dumpCore='off'", "memory/@dumpCore"},
	{"os", "<loader type='rom'>/srv/bios.bin</loader>", "os/loader"},
	{"os", "<boot dev='network'/>", "os/boot"},
	{"os", "<acpi><table type='slic'>/srv/slic</table></acpi>", "os/acpi"},
	{"os", "<bootmenu enable='yes'/>", ""},
	{"features", "<pae/>", ""},
	{"features", "<smm state='on'><tseg unit='MiB'>48</tseg></smm>", "features/smm"},
	{"features", "<hyperv mode='custom'><relaxed state='on'/></hyperv>", ""},
	{"clock", " basis='localtime'", "clock/@basis"},
	{"clock", "<timer name='rtc' track='guest' tickpolicy='catchup'><catchup threshold='1' slew='2' limit='3'/></timer>", "clock/timer/@track clock/timer/catchup"},
	{"disk", " snapshot='no'", "disk vda/@snapshot"},
	{"disk", "<geometry cyls='1' heads='2' secs='3'/>", "disk vda/geometry"},
	{"disk", "<serial>4711</serial>", ""},
	{"disk", "<wwn>5000c50015ea71aa</wwn>", ""},
	{"disk", "<blockio logical_block_size='512' physical_block_size='4096'/>", ""},
	{"disk", "<blockio discard_granularity='4096'/>", "disk vda/blockio"},
	{"disk", "<encryption format='luks'><secret type='passphrase' uuid='f52a81b2-424e-490c-823d-6bd4235bc572'/></encryption>", "disk vda/encryption"},
	{"disk", "<shareable/>", ""},
	{"disk", "<transient/>", ""},
	{"disk", "<transient shareBacking='yes'/>", "disk vda/transient/@shareBacking"},
	{"disk", "<iotune><total_bytes_sec>1000</total_bytes_sec></iotune>", ""},
	{"disk", "<iotune><total_bytes_sec>1000</total_bytes_sec><group_name>g</group_name></iotune>", "disk vda/iotune/group_name"},
	{"disk", "<backingStore/>", "usual"},
	{"driver", " io='native'", ""},
	{"driver", " discard='unmap'", ""},
	{"driver", " detect_zeroes='unmap'", ""},
	{"driver", " copy_on_read='on'", ""},
	{"driver", " rerror_policy='report'", "disk vda/driver/@rerror_policy"},
	{"driver", " queue_size='256'", "disk vda/driver/@queue_size"},
	{"source", " startupPolicy='optional'", "disk vda/source/@startupPolicy"},
	{"source", "<seclabel model='dac' relabel='no'/>", "disk vda/source/seclabel"},
	{"interface", "<vlan><tag id='42'/></vlan>", ""},
	{"interface", "<vlan trunk='yes'><tag id='42' nativeMode='tagged'/></vlan>", "interface 52:54:00:00:00:01/vlan/tag/@nativeMode"},
	{"interface", "<virtualport type='openvswitch'><parameters interfaceid='09b11c53-8b5c-4eeb-8f00-d84eaa0aaa4f'/></virtualport>", ""},
	{"interface", "<filterref filter='clean-traffic'/>", "interface 52:54:00:00:00:01/filterref"},
	{"interface", "<mtu size='9000'/>", ""},
	{"interface", "<coalesce><rx><frames max='7'/></rx></coalesce>", "interface 52:54:00:00:00:01/coalesce"},
	{"interface", "<bandwidth><inbound average='1000' floor='200'/></bandwidth>", "interface 52:54:00:00:00:01/bandwidth/inbound/@floor"},
	{"interface", "<link state='down'/>", ""},
	{"interface", "<rom bar='off'/>", "interface 52:54:00:00:00:01/rom"},
	{"interface", "<port isolated='yes'/>", "interface 52:54:00:00:00:01/port"},
	{"devices", "<interface type='ethernet'><mac address='52:54:00:00:00:02'/></interface>", "interface 52:54:00:00:00:02"},
	{"devices", "<disk type='file' device='cdrom'><target dev='sda' bus='sata'/><readonly/></disk>", "disk sda"},
	{"devices", "<serial type='tcp'><source mode='bind' host='127.0.0.1' service='1'/><protocol type='raw'/></serial>", "serial/@type serial/protocol serial/source"},
	{"devices", "<serial type='pty'><log file='/srv/log' append='off'/></serial>", "serial/log/@append"},
	{"devices", "<serial type='pty'><target type='isa-serial' port='0'><model name='isa-serial'/></target></serial>", "usual"},
	{"devices", "<serial type='pty'/><serial type='pty'><target port='1'/></serial>", "all but the first serial"},
	{"devices", "<console type='pty'><target type='virtio' port='0'/></console>", "usual"},
	{"devices", "<console type='unix'><source mode='bind' path='/srv/c'/><target type='virtio'/></console>", "console/@type console/source"},
	{"devices", "<controller type='scsi' index='0' model='lsilogic'/>", "controller scsi"},
	{"devices", "<controller type='virtio-serial' index='0'><driver queues='4'/></controller>", "controller virtio-serial"},
	{"devices", "<controller type='usb' index='0' model='qemu-xhci'/>", "usual"},
	{"devices", "<controller type='usb' index='0' model='qemu-xhci' ports='15'/>", "controller usb"},
	{"devices", "<controller type='usb' index='0' model='piix3-uhci'/>", "controller usb"},
	{"devices", "<graphics type='spice' autoport='yes'><image compression='off'/></graphics>", "graphics/image"},
	{"devices", "<graphics type='vnc' port='-1' autoport='yes' passwd='hidden'/>", "graphics/@passwd"},
	{"devices", "<video><model type='virtio' heads='1' primary='yes'><acceleration accel3d='yes'/></model></video>", "video/model/acceleration"},
	{"devices", "<video><model type='qxl' ram='65536' vram='65536' vgamem='16384' heads='1'/></video>", "usual"},
	{"devices", "<rng model='virtio'><rate bytes='1000'/><backend model='random'>/dev/urandom</backend></rng>", "rng/rate"},
	{"devices", "<rng model='virtio'><backend model='builtin'/></rng>", "rng"},
	{"devices", "<tpm model='tpm-tis'><backend type='passthrough'><device path='/dev/tpm0'/></backend></tpm>", "tpm"},
	{"devices", "<filesystem type='mount' accessmode='mapped'><source dir='/srv/a'/><target dir='a'/></filesystem>", "filesystem a/@accessmode"},
	{"devices", "<input type='evdev'><source dev='/dev/input/event1'/></input>", "input"},
	{"devices", "<input type='tablet' bus='usb'/>", ""},
	{"devices", "<hostdev mode='subsystem' type='usb'><source><vendor id='0x1234'/><product id='0xbeef'/></source></hostdev>", ""},
	{"devices", "<hostdev mode='subsystem' type='scsi'><source><adapter name='scsi_host0'/></source></hostdev>", "hostdev"},
	{"devices", "<memballoon model='virtio' autodeflate='on'/>", ""},
	{"devices", "<channel type='unix'><source path='/srv/a'/><target type='virtio' name='org.qemu.guest_agent.0'/></channel>", "channel/source"},
	{"devices", "<shmem name='a'/>", "shmem"},
	{"devices", "<audio id='1' type='pulseaudio'/>", "audio"},
}

const imported = `<domain type='kvm'><name>a</name><memory unit='KiB'>65536</memory><vcpu placement='static'>1</vcpu>
	<os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os><features><acpi/></features><clock offset='utc'></clock>
	<devices><disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/srv/a'></source><target dev='vda' bus='virtio'/></disk>
	<interface type='bridge'><mac address='52:54:00:00:00:01'/><source bridge='br0'/><model type='virtio'/></interface></devices></domain>`

func TestUnsupported_EachSettingIsKeptOrNamed(t *testing.T) {
	for _, s := range settings {
		t.Run(s.in+" "+s.is, func(t *testing.T) {
			text := strings.Replace(imported, "</"+s.in+">", s.is+"</"+s.in+">", 1)
			if !strings.HasPrefix(s.is, "<") {
				text = strings.Replace(imported, "<"+s.in, "<"+s.in+s.is, 1)
			}
			d, err := domainxml.Read(text)
			if err != nil {
				t.Fatal(err)
			}
			names, err := notDescribed(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(s.lost, "usual"), strings.Join(names, " ")); diff != "" {
				t.Errorf("named are (-want +got):\n%s", diff)
			}
		})
	}
}
