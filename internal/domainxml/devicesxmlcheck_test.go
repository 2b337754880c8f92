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
		`<redirdev bus='usb' type='spicevmc'><source path='/dev/sdb'/></redirdev>`,
		`<channel type='spicevmc'><log file='a.log'/><target type='virtio' name='a'/></channel>`,
		`<hostdev mode='subsystem' type='pci'><source><address bus='1' slot='0' function='0'/></source><rom file='sdb'/></hostdev>`,
		`<hostdev mode='subsystem' type='usb'><source><block>&#47;dev/sdb</block></source></hostdev>`,
		`<memory model='dimm'><target><size unit='M'>64</size><node>0</node></target></memory>`,
		`<shmem name='sdb'><model type='ivshmem-plain'/><size unit='M'>4</size></shmem>`,
		`<input type='passthrough' bus='virtio'><source evdev='event1'/></input>`,
		`<input type='evdev'><source dev='event1'/></input>`,
		`<audio id='1' type='file' path='sdb'/>`,
		`<lease><lockspace>a</lockspace><key>b</key><target path='/dev/sdb'/></lease>`,
	} {
		if err := CheckDevices(text); err == nil {
			t.Errorf("taken: %s", text)
		}
	}
}

// No device makes a socket, which deletes the file at its path, or connects to a service of the host, wherever it is.
func TestCheckDevices_Sockets(t *testing.T) {
	for _, device := range []string{
		`<channel type='%s'><source mode='%s' path='%s'/><target type='virtio' name='a'/></channel>`,
		`<parallel type='%s'><source mode='%s' path='%s'/></parallel>`,
		`<redirdev bus='usb' type='%s'><source mode='%s' path='%s'/></redirdev>`,
		`<smartcard mode='passthrough' type='%s'><source mode='%s' path='%s'/></smartcard>`,
	} {
		for _, path := range []string{
			"/run/virtclaim/a.sock", "/var/lib/libvirt/qemu/channel/target/web.a", "/var/lib/libvirt/images/a.raw",
			"/var/lib/libvirt/qemu/domain-1-db/monitor.sock", "/run/libvirt/libvirt-sock", "/run/docker.sock", "a.sock", "@a", "",
		} {
			for _, mode := range []string{"bind", "connect"} {
				for _, kind := range []string{"unix", "spicevmc"} {
					if text := fmt.Sprintf(device, kind, mode, path); CheckDevices(text) == nil {
						t.Errorf("taken: %s", text)
					}
				}
			}
		}
	}
	for _, text := range []string{
		`<channel type='tcp'><source mode='connect' host='127.0.0.1' service='22'/><target type='virtio' name='a'/></channel>`,
		`<redirdev bus='usb' type='udp'><source mode='connect' host='127.0.0.1' service='53'/></redirdev>`,
		`<hostdev mode='subsystem' type='pci'><source/><rom file='/proc/self/root/dev/sdb'/></hostdev>`,
		`<hostdev mode='subsystem' type='pci'><source/><rom file='/usr/share/a'/></hostdev>`,
		`<shmem name='a'><server path='/run/libvirt/libvirt-sock'/><model type='ivshmem-doorbell'/></shmem>`,
		`<smartcard mode='host-certificates'><certificate>a</certificate><certificate>b</certificate><certificate>c</certificate><database>/proc/1/fd</database></smartcard>`,
	} {
		if CheckDevices(text) == nil {
			t.Errorf("taken: %s", text)
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
		`<q:sound/>`:                         "<sound> is not",
		`<sound model='ac97' model='ich9'/>`: "twice",
	} {
		if err := CheckDevices(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
