package domainxml

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// checkTokens sees the text by itself: an end element that it does not begin, such as </devices>, would end what is read of it.
func checkTokens(text string) error {
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is not well-formed XML: %w", err)
		}
		switch t := token.(type) {
		case xml.ProcInst, xml.Directive:
			return errors.New("it has a declaration, such as <?xml?> or <!DOCTYPE>: give elements only")
		case xml.StartElement:
			if err := checkNames(t); err != nil {
				return err
			}
		}
	}
}

// checkNames refuses what two readers may read differently.
func checkNames(t xml.StartElement) error {
	seen := map[string]bool{}
	for _, a := range t.Attr {
		if t.Name.Space != "" || a.Name.Space != "" || a.Name.Local == "xmlns" {
			return fmt.Errorf("<%s> has an XML namespace, which no device has", t.Name.Local)
		}
		if seen[a.Name.Local] {
			return fmt.Errorf("<%s> has the attribute %s twice", t.Name.Local, a.Name.Local)
		}
		seen[a.Name.Local] = true
	}
	return nil
}

// storageTypes are, of each kind of device that may bring storage of the host, the types that bring none of which only its name is
// told here. It lists what may be had: what libvirt learns later is refused until it was looked at.
var storageTypes = map[string]struct {
	attribute string
	allowed   []string
}{
	"memory":    {"model", []string{"dimm", "virtio-mem", "sgx-epc"}},
	"hostdev":   {"type", []string{"usb", "pci", "mdev"}},
	"channel":   {"type", streams},
	"parallel":  {"type", streams},
	"redirdev":  {"type", streams},
	"smartcard": {"type", append([]string{""}, streams...)},
}

// streams are what a character device can be connected with but for file, dev and pipe, which open, and write to, any path.
var streams = []string{"null", "vc", "pty", "stdio", "udp", "tcp", "unix", "spicevmc", "spiceport", "nmdm", "qemu-vdagent", "dbus"}

// sockets are the folders where a device's socket may be: QEMU deletes what is at the path where it makes one, and who is connected to a
// service of the host, such as libvirt, has what that gives to its clients. The last one is libvirt's, for those that are given by hand: in
// the folders below it are those of other machines.
var sockets = []string{"/run/virtclaim/*", "/var/run/virtclaim/*", "/var/lib/libvirt/qemu/channel/target/*"}

var inputs = []string{"/dev/input/"}

// hostPaths are where a device may name a path of the host, and what it must be below: no image and no device with blocks.
var hostPaths = map[string][]string{
	"channel/source/path": sockets, "parallel/source/path": sockets, "redirdev/source/path": sockets, "smartcard/source/path": sockets,
	"hostdev/rom/file": {"/"}, "shmem/server/path": {"/"}, "smartcard/database": {"/"}, "smartcard/certificate": {""}, // the last is a name
	"input/source/evdev": inputs, "input/source/dev": inputs,
}

// IsSpecial tells whether a path of the host is that of a device or of libvirt's own sockets and records, or leads through /proc or /sys,
// where links such as /proc/self/root go anywhere.
func IsSpecial(name string) bool {
	return slices.ContainsFunc([]string{"/dev/", "/proc/", "/sys/", "/run/libvirt/", "/var/run/libvirt/"}, func(folder string) bool {
		return strings.HasPrefix(path.Clean(name)+"/", folder)
	})
}

// checkStorage refuses a device that opens storage which nobody keeps others from: what is not in disks is not seen by those who
// ask hosts whether a volume is in use.
func (n node) checkStorage() error {
	kind := n.XMLName.Local
	if rule, has := storageTypes[kind]; has && !slices.Contains(rule.allowed, n.attr(rule.attribute)) {
		return fmt.Errorf("<%s %s=%q> is not supported, as it may open storage that other machines use; supported are %s. For storage use disks",
			kind, rule.attribute, n.attr(rule.attribute), strings.TrimLeft(strings.Join(rule.allowed, ", "), ", "))
	}
	if mode := n.attr("mode"); kind == "hostdev" && mode != "subsystem" {
		return fmt.Errorf("<hostdev mode=%q> is not supported; its mode must be subsystem", mode)
	}
	return n.checkPaths(kind)
}

// checkPaths knows a path by the name that libvirt has for one, or by a slash.
func (n node) checkPaths(at string) error {
	if err := checkHostPath(at, strings.TrimSpace(n.Text)); err != nil {
		return err
	}
	for _, a := range n.Attrs {
		if err := checkHostPath(at+"/"+a.Name.Local, a.Value); err != nil {
			return err
		}
	}
	for _, child := range n.Children {
		if err := child.checkPaths(at + "/" + child.XMLName.Local); err != nil {
			return err
		}
	}
	return nil
}

func checkHostPath(at, value string) error {
	below, allowed := hostPaths[at]
	switch name := path.Base(at); {
	case value == "":
		return nil
	case allowed && slices.ContainsFunc(below, func(folder string) bool { return isBelow(folder, value) }):
		return nil
	case allowed:
		return fmt.Errorf("%s is %q, which must be a path below %s without dots, and no device, nor anything below /proc, /sys or /run/libvirt",
			at, value, strings.Join(below, " or "))
	case name == "path" || name == "file" || name == "dev" || name == "log" || strings.Contains(value, "/"):
		return fmt.Errorf("%s names %q of the host, which may be storage that other machines use. For storage use disks", at, value)
	}
	return nil
}

// isBelow takes any text for the folder "", of the root folder only what is not special, and with a * only what is in the folder itself.
func isBelow(folder, value string) bool {
	in := strings.HasPrefix(value, folder)
	if before, own := strings.CutSuffix(folder, "*"); own {
		in = path.Dir(value)+"/" == before
	}
	return folder == "" || in && path.Clean(value) == value && (folder != "/" || !IsSpecial(value))
}
