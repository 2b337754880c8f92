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

// checkTokens checks the tokens of the text alone, before it is wrapped in an element: an end element without a start, such as
// </devices>, would otherwise end the parsing early.
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

// checkNames refuses namespaces and duplicate attributes, which two parsers may read differently.
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

// storageTypes lists, for each kind of device that can open storage of the host, the types that open none. It is an allowlist: types
// that libvirt adds later are refused until they have been reviewed.
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

// streams are the allowed backends of a character device. file, dev and pipe are left out, because they open and write to any path.
var streams = []string{"null", "vc", "pty", "stdio", "udp", "tcp", "unix", "spicevmc", "spiceport", "nmdm", "qemu-vdagent", "dbus"}

// sockets are the folders where a device's socket may be. Elsewhere QEMU might delete an existing file when it creates the socket, or
// a guest might connect to a service of the host, such as libvirt. The last folder is libvirt's for manually configured sockets; its
// subfolders contain those of other machines.
var sockets = []string{"/run/virtclaim/*", "/var/run/virtclaim/*", "/var/lib/libvirt/qemu/channel/target/*"}

var inputs = []string{"/dev/input/"}

// hostPaths maps the places where a device may name a path of the host to the folders that the path must be below: none of them leads
// to an image or a block device.
var hostPaths = map[string][]string{
	"channel/source/path": sockets, "parallel/source/path": sockets, "redirdev/source/path": sockets, "smartcard/source/path": sockets,
	"hostdev/rom/file": {"/"}, "shmem/server/path": {"/"}, "smartcard/database": {"/"}, "smartcard/certificate": {""}, // the last is a name
	"input/source/evdev": inputs, "input/source/dev": inputs,
}

// IsSpecial reports whether a path of the host is below /dev or libvirt's own runtime folders, or below /proc or /sys, where links
// such as /proc/self/root lead anywhere.
func IsSpecial(name string) bool {
	return slices.ContainsFunc([]string{"/dev/", "/proc/", "/sys/", "/run/libvirt/", "/var/run/libvirt/"}, func(folder string) bool {
		return strings.HasPrefix(path.Clean(name)+"/", folder)
	})
}

// checkStorage refuses a device that may open storage of the host. Only volumes in disks are checked for use by other machines.
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

// checkPaths checks all values that name a path of the host, which are recognized by libvirt's names for paths or by a slash.
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

// isBelow reports whether a path is below a folder. The folder "" allows any text, "/" any path that is not special, and a trailing *
// only paths directly in the folder.
func isBelow(folder, value string) bool {
	in := strings.HasPrefix(value, folder)
	if before, own := strings.CutSuffix(folder, "*"); own {
		in = path.Dir(value)+"/" == before
	}
	return folder == "" || in && path.Clean(value) == value && (folder != "/" || !IsSpecial(value))
}
