package domainxml

import (
	"fmt"
	"strings"
	"testing"
)

// No device that is configured as XML opens storage that the check for use by other machines does not see, whatever its kind.
func TestCheckDevices_NoStorage(t *testing.T) {
	for _, text := range []string{
		`<memory model='nvdimm'><source><path>/dev/sdb</path></source><target><size unit='M'>64</size></target></memory>`,
		`<memory model='virtio-pmem' access='shared'><source><path>/var/lib/libvirt/images/a.raw</path></source><target><size>65536</size></target></memory>`,
		`<memory model='dimm'><source><path>/dev/sdb</path></source><target><size>65536</size></target></memory>`,
		`<channel type='file'><source path='/dev/sdb'/><target type='virtio' name='a'/></channel>`,
		`<channel type='dev'><source path='/dev/sdb'/><target type='virtio' name='a'/></channel>`,
		`<channel type='pipe'><source path='/tmp/p'/><target type='virtio' name='a'/></channel>`,
		`<channel><source path='/dev/sdb'/><target type='virtio' name='a'/></channel>`,
		`<channel type='pty'><log file='/dev/sdb'/><target type='virtio' name='a'/></channel>`,
		`<channel type='pty' type='file'><source path='/dev/sdb'/><target type='virtio' name='a'/></channel>`,
		`<parallel type='dev'><source path='/dev/sdb'/></parallel>`,
		`<parallel type='file'><source path='dev/sdb'/></parallel>`,
		`<redirdev bus='usb' type='dev'><source path='/dev/sdb'/></redirdev>`,
		`<smartcard mode='passthrough' type='file'><source path='/dev/sdb'/></smartcard>`,
		`<hostdev mode='subsystem' type='scsi'><source><adapter name='scsi_host0'/><address bus='0' target='0' unit='0'/></source></hostdev>`,
		`<hostdev mode='subsystem' type='scsi_host'><source protocol='vhost' wwpn='naa.5123456789abcde0'/></hostdev>`,
		`<hostdev mode='capabilities' type='storage'><source><block>/dev/sdb</block></source></hostdev>`,
		`<hostdev mode='capabilities' type='misc'><source><char>/dev/sg0</char></source></hostdev>`,
		`<hostdev mode='capabilities' type='pci'/>`,
		`<hostdev mode='subsystem' type='usb' type='scsi'/>`,
		`<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='1' slot='0' function='0'/></source><rom file='/dev/sdb'/></hostdev>`,
		`<shmem name='../sdb'><model type='ivshmem-plain'/><size unit='M'>4</size></shmem>`,
		`<input type='passthrough' bus='virtio'><source evdev='/dev/sdb'/></input>`,
		`<input type='evdev'><source dev='/dev/input/../sdb'/></input>`,
		`<interface type='vhostuser'><source type='unix' path='/tmp/s' mode='client'/></interface>`,
		`<disk type='block' device='disk'><source dev='/dev/sdb'/><target dev='vdb'/></disk>`,
		`<filesystem type='mount'><source dir='/var/lib/libvirt/images'/><target dir='x'/></filesystem>`,
		`<pstore backend='acpi-erst'><path>/dev/sdb</path><size>8</size></pstore>`,
		`<lease><lockspace>a</lockspace><key>b</key><target path='/dev/sdb'/></lease>`,
	} {
		if err := CheckDevices(text); err == nil {
			t.Errorf("taken: %s", text)
		}
	}
	for _, text := range []string{
		`<memory model='dimm'><target><size unit='M'>64</size><node>0</node></target></memory>`,
		`<channel type='unix'><source mode='bind' path='/run/virtclaim/a.sock'/><target type='virtio' name='a'/></channel>`,
		`<channel type='spicevmc'><target type='virtio' name='com.redhat.spice.0'/></channel>`,
		`<redirdev bus='usb' type='spicevmc'/>`,
		`<smartcard mode='host'/>`,
		`<hostdev mode='subsystem' type='pci' managed='yes'><source><address domain='0' bus='1' slot='0' function='0'/></source><rom file='/usr/share/vgabios/a.rom'/></hostdev>`,
		`<shmem name='a'><model type='ivshmem-plain'/><size unit='M'>4</size></shmem>`,
		`<input type='passthrough' bus='virtio'><source evdev='/dev/input/event1'/></input>`,
		`<controller type='scsi' index='1' model='virtio-scsi'/><hub type='usb'/><crypto model='virtio' type='qemu'><backend model='builtin'/></crypto>`,
	} {
		if err := CheckDevices(text); err != nil {
			t.Errorf("refused: %s: %v", text, err)
		}
	}
}

// A socket is created only where no file of other programs can be, and connects to no service of the host; no path leads through /proc
// or /sys.
func TestCheckDevices_Sockets(t *testing.T) {
	for device, text := range map[string]string{
		"channel":   `<channel type='unix'><source mode='%s' path='%s'/><target type='virtio' name='a'/></channel>`,
		"parallel":  `<parallel type='unix'><source mode='%s' path='%s'/></parallel>`,
		"redirdev":  `<redirdev bus='usb' type='unix'><source mode='%s' path='%s'/></redirdev>`,
		"smartcard": `<smartcard mode='passthrough' type='unix'><source mode='%s' path='%s'/></smartcard>`,
	} {
		for path, taken := range map[string]bool{
			"/run/virtclaim/a.sock": true, "/var/run/virtclaim/a": true, "/var/lib/libvirt/qemu/channel/target/web.a": true,
			"/var/lib/libvirt/images/a.raw": false, "/var/lib/libvirt/qemu/nvram/db_VARS.fd": false, "/var/lib/libvirt/qemu/save/db.save": false,
			"/var/lib/libvirt/qemu/domain-1-db/monitor.sock": false, "/run/libvirt/libvirt-sock": false, "/var/run/libvirt/libvirt-sock": false,
			"/var/lib/libvirt/qemu/channel/target/domain-1-db/org.qemu.guest_agent.0": false, "/run/virtclaim/*/a": false,
			"/run/docker.sock": false, "/run/virtclaim": false, "/run/virtclaim/": false, "/run/virtclaim/../libvirt/libvirt-sock": false,
			"/run/virtclaim//a": false, "a.sock": false, "/proc/1/root/run/virtclaim/a": false, "@/run/virtclaim/a": false,
		} {
			for _, mode := range []string{"bind", "connect"} {
				if err := CheckDevices(fmt.Sprintf(text, mode, path)); (err == nil) != taken {
					t.Errorf("%s %s %s: %v", device, mode, path, err)
				}
			}
		}
	}
	for _, path := range []string{
		"/proc/self/root/dev/sdb", "/proc/1/fd/3", "/sys/block/sda", "/dev", "/dev/sdb", "/run/libvirt/libvirt-sock", "/var/run/libvirt/x",
	} {
		for _, text := range []string{
			`<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='1' slot='0' function='0'/></source><rom file='%s'/></hostdev>`,
			`<shmem name='a'><server path='%s'/><model type='ivshmem-doorbell'/></shmem>`,
			`<smartcard mode='host-certificates'><certificate>a</certificate><certificate>b</certificate><certificate>c</certificate><database>%s</database></smartcard>`,
		} {
			if err := CheckDevices(fmt.Sprintf(text, path)); err == nil {
				t.Errorf("taken: %s", fmt.Sprintf(text, path))
			}
			if err := CheckDevices(fmt.Sprintf(text, "/usr/share/a")); err != nil {
				t.Error(err)
			}
		}
	}
}

// The whole text is validated, and parsed as libvirt would: it contains nothing but devices, and nothing ambiguous.
func TestCheckDevices_WholeText(t *testing.T) {
	for text, want := range map[string]string{
		`<sound model='ac97'/></devices><disk type='file'/>`:          "not well-formed",
		`<sound model='ac97'/></devices><devices><disk type='file'/>`: "not well-formed",
		`</devices><seclabel type='none'/><devices>`:                  "not well-formed",
		`<sound model='ac97'/><!-- <disk/>`:                           "not well-formed",
		`<?xml version='1.0'?><sound model='ac97'/>`:                  "a declaration",
		`<?evil?><sound model='ac97'/>`:                               "a declaration",
		`<!DOCTYPE d [<!ENTITY e "x">]><sound model='ac97'/>`:         "a declaration",
		`<sound model='&e;'/>`:                                        "not well-formed",
		"<sound model='ac97\x00'/>":                                   "not well-formed",
		`<q:sound xmlns:q='urn:q' model='ac97'/>`:                     "namespace",
		`<sound model='ac97' model='ich9'/>`:                          "twice",
	} {
		if err := CheckDevices(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
