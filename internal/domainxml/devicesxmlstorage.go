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

// hostPaths are where a device may name a path of the host, and what it must be below: no image and no device with blocks.
var hostPaths = map[string]string{
	"channel/source/path": "", "parallel/source/path": "", "redirdev/source/path": "", "smartcard/source/path": "", // sockets
	"hostdev/rom/file": "/", "shmem/server/path": "/", "smartcard/database": "/", "smartcard/certificate": "",
	"input/source/evdev": "/dev/input/", "input/source/dev": "/dev/input/",
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
	case allowed && (below == "" || path.Clean(value) == value && strings.HasPrefix(value, below) && (below != "/" || !strings.HasPrefix(value, "/dev/"))):
		return nil
	case allowed:
		return fmt.Errorf("%s is %q, which must be a path below %s without dots, and no device", at, value, below)
	case name == "path" || name == "file" || name == "dev" || name == "log" || strings.Contains(value, "/"):
		return fmt.Errorf("%s names %q of the host, which may be storage that other machines use. For storage use disks", at, value)
	}
	return nil
}
