package domainxml

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// known are the devices that are taken: those with these attributes at least. None of them opens storage, files or sockets of the host,
// unless by what checkElement refuses. What libvirt adds later is refused until it has been reviewed.
const known = "<sound/>, <input/>, <panic/>, <hub/>, <crypto/>, <controller/>, <hostdev mode='subsystem' type='usb'/>, " +
	"<hostdev mode='subsystem' type='pci'/>, <hostdev mode='subsystem' type='mdev'/>, <redirdev type='spicevmc'/>, " +
	"<smartcard mode='passthrough' type='spicevmc'/>, <channel type='spicevmc'/>, <vsock/>, " +
	"<memballoon model='none'/>, <memballoon model='virtio'/>"

// CheckDevices validates XML text of one or more device elements that are to be added to a domain.
func CheckDevices(text string) error {
	if len(text) > mostXML {
		return fmt.Errorf("it has %d bytes, and may have %d", len(text), mostXML)
	}
	if err := checkTokens(text); err != nil {
		return err
	}
	var given node
	if err := xml.Unmarshal([]byte("<devices>"+text+"</devices>"), &given); err != nil {
		return fmt.Errorf("it is not well-formed XML: %w", err)
	}
	if len(given.Children) == 0 {
		return errors.New("it has no element. Leave it out when there is nothing to add")
	}
	if strings.TrimSpace(given.Text) != "" {
		return fmt.Errorf("it has text between its elements: %q", strings.TrimSpace(given.Text))
	}
	seen := map[string]bool{}
	for _, device := range given.Children {
		name := device.XMLName.Local
		if seen[name] && slices.Contains([]string{"vsock", "memballoon"}, name) {
			return fmt.Errorf("it has more than one <%s>, of which a machine has one at most: leave the others out", name)
		}
		seen[name] = true
		if !device.isKnown() {
			return fmt.Errorf("<%.40s> is not, or not with these attributes, among the devices that it takes, which open no storage, "+
				"file or socket of the host: see the documentation of devices_xml. Most others have an attribute of their own, such as "+
				"disks", name)
		}
	}
	list, err := parseDevices(text)
	if err != nil {
		return err
	}
	again, err := xml.Marshal(list)
	if err != nil {
		return fmt.Errorf("write it as libvirt wants it: %w", err)
	}
	var understood node
	if err := xml.Unmarshal(again, &understood); err != nil {
		return err
	}
	return given.without(understood)
}

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
		case xml.CharData:
			if strings.Contains(string(t), "/") {
				return fmt.Errorf("it has the text %q, which may name a file of the host or an address: leave it out", t)
			}
		case xml.StartElement:
			if err := checkElement(t); err != nil {
				return err
			}
		}
	}
}

// checkElement refuses what two parsers may read differently, what virtclaim itself gives to devices, and paths, with or without a slash.
func checkElement(t xml.StartElement) error {
	name := t.Name.Local
	seen := map[string]bool{}
	for _, a := range t.Attr {
		switch {
		case t.Name.Space != "" || a.Name.Space != "" || a.Name.Local == "xmlns":
			return fmt.Errorf("<%s> has an XML namespace, which no device has", name)
		case name == "alias":
			return errors.New("it has an <alias>, which virtclaim gives to devices: leave that out")
		case seen[a.Name.Local]:
			return fmt.Errorf("<%s> has the attribute %s twice", name, a.Name.Local)
		case name == "driver" && a.Name.Local == "model":
			return fmt.Errorf("<driver model=%q> names a module of the host's kernel: leave that out", a.Value)
		case a.Value == agentPort:
			return errors.New("the <channel> of the guest agent has an attribute of its own: use guest_agent")
		case slices.Contains([]string{"path", "file", "dev", "evdev"}, a.Name.Local), strings.Contains(a.Value, "/"):
			return fmt.Errorf("<%s %s=%q> may name a file or a device of the host, or an address: leave that out. For storage use disks",
				name, a.Name.Local, a.Value)
		}
		seen[a.Name.Local] = true
	}
	return nil
}

// node is any XML element. Namespaces are ignored in its name.
type node struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []node     `xml:",any"`
}

func (n node) attr(name string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// isKnown reports whether the device has the name and all attributes of one of those known.
func (n node) isKnown() bool {
	var list node
	return xml.Unmarshal([]byte("<devices>"+known+"</devices>"), &list) == nil && slices.ContainsFunc(list.Children, func(k node) bool {
		return k.XMLName == n.XMLName &&
			!slices.ContainsFunc(k.Attrs, func(a xml.Attr) bool { return n.attr(a.Name.Local) != a.Value })
	})
}

// without returns an error if n has an element or an attribute that other lacks, because it would be lost silently.
func (n node) without(other node) error {
	for _, a := range n.Attrs {
		if a.Name.Space != "xmlns" && a.Name.Local != "xmlns" && other.attr(a.Name.Local) == "" && a.Value != "" {
			return fmt.Errorf("the attribute %s of <%s> is not known", a.Name.Local, n.XMLName.Local)
		}
	}
	left := map[string][]node{}
	for _, c := range other.Children {
		left[c.XMLName.Local] = append(left[c.XMLName.Local], c)
	}
	for _, c := range n.Children {
		same := left[c.XMLName.Local]
		if len(same) == 0 {
			return fmt.Errorf("the element <%s> of <%s> is not known", c.XMLName.Local, n.XMLName.Local)
		}
		if err := c.without(same[0]); err != nil {
			return err
		}
		left[c.XMLName.Local] = same[1:]
	}
	return nil
}
