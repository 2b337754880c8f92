package domainxml

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// piece is an element or an attribute of a domain's XML that libvirtxml does not know, because libvirt is newer or somebody's own.
type piece struct {
	// name is what it is, for people, text the piece itself.
	name, text string
	// at is its place in the XML that is written.
	at int
}

// unknownTo are the pieces of a domain's stored XML that libvirtxml does not know, with the places in now, that XML as
// it was changed, where they belong. What is not there any more, they go with.
func unknownTo(d *libvirtxml.Domain, stored string, now func() (string, error)) (all []piece, changed string, err error) {
	known, err := xml.Marshal(d)
	if err != nil {
		return nil, "", fmt.Errorf("write the domain's XML: %w", err)
	}
	if changed, err = now(); err != nil {
		return nil, "", err
	}
	var roots [3]*element
	for n, text := range []string{stored, string(known), changed} {
		if roots[n], err = outline(text); err != nil {
			return nil, "", fmt.Errorf("read the domain's XML: %w", err)
		}
	}
	add := func(name, text string, at int) { all = append(all, piece{name, text, at}) }
	roots[0].unknown(stored, roots[1], roots[2], add)
	return all, changed, nil
}

// keepUnknown changes a domain by f, which gives its new XML, without losing what libvirtxml does not know.
func keepUnknown(d *libvirtxml.Domain, stored string, f func() (string, error)) (string, error) {
	all, text, err := unknownTo(d, stored, f)
	if err != nil {
		return "", err
	}
	slices.SortStableFunc(all, func(a, b piece) int { return b.at - a.at })
	for n := 0; n < len(all); {
		same := n // several at one place are in their order
		for ; same < len(all) && all[same].at == all[n].at; same++ {
		}
		var here strings.Builder
		for _, p := range all[n:same] {
			here.WriteString(p.text)
		}
		text, n = text[:all[n].at]+here.String()+text[all[n].at:], same
	}
	return text, nil
}

// unknownNames are the pieces of a domain's XML that libvirtxml does not know.
func unknownNames(d *libvirtxml.Domain, stored string) (names []string, err error) {
	all, _, err := unknownTo(d, stored, func() (string, error) { return d.Marshal() })
	for _, p := range all {
		if !strings.HasPrefix(p.name, "xmlns:") {
			names = append(names, p.name)
		}
	}
	return names, err
}

// element is the outline of one in a text. A name is without its prefix: libvirtxml writes namespaces in another way.
type element struct {
	name     string
	attrs    []xml.Attr
	children []*element
	// start and end are around the whole, open is where a further attribute belongs, and inner where a further child does.
	start, open, inner, end int
}

func outline(text string) (*element, error) {
	root := &element{}
	stack := []*element{root}
	for tokens := xml.NewDecoder(strings.NewReader(text)); ; {
		before := int(tokens.InputOffset())
		token, err := tokens.RawToken()
		if errors.Is(err, io.EOF) && len(stack) == 1 && len(root.children) == 1 {
			return root.children[0], nil
		}
		if err != nil {
			return nil, err
		}
		parent, at := stack[len(stack)-1], int(tokens.InputOffset())
		switch t := token.(type) {
		case xml.StartElement:
			tag := text[before:at]
			e := &element{name: t.Name.Local, attrs: slices.Clone(t.Attr), start: before}
			e.open = before + len(strings.TrimRight(tag, "/> \n\t"))
			parent.children, stack = append(parent.children, e), append(stack, e)
		case xml.EndElement:
			if len(stack) == 1 {
				return nil, fmt.Errorf("</%s> ends nothing", t.Name.Local)
			}
			parent.inner, parent.end, stack = before, at, stack[:len(stack)-1]
		}
	}
}

func (e *element) attr(name string) string {
	for _, a := range e.attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (e *element) named(name string) (all []*element) {
	for _, c := range e.children {
		if c.name == name {
			all = append(all, c)
		}
	}
	return all
}

// unknown adds what of an element is not known, where now is what the element has become; nil if it is gone. Nobody's words
// for a source are those for another one.
func (e *element) unknown(text string, known, now *element, add func(name, text string, at int)) {
	if now == nil || e.name == "metadata" || e.name == "source" && !known.says(now) {
		return
	}
	for _, a := range e.attrs {
		if a.Name.Local == "xmlns" || has(known, a) || has(now, a) {
			continue
		}
		name := a.Name.Local
		if a.Name.Space != "" {
			name = a.Name.Space + ":" + name
		}
		var value strings.Builder
		_ = xml.EscapeText(&value, []byte(a.Value)) // a builder takes all
		add(name+" of "+e.name, fmt.Sprintf(` %s="%s"`, name, value.String()), now.open)
	}
	for _, c := range e.children {
		peers, become := known.named(c.name), now.named(c.name)
		switch n := c.index(e.named(c.name), peers); {
		case n >= 0:
			c.unknown(text, peers[n], peers[n].among(peers, become), add)
		case len(peers) == 0 && len(become) == 0 || len(peers) > 0 && len(become) > 0:
			add(c.name+" of "+e.name, text[c.start:c.end], now.inner)
		}
	}
}

// index is the place of an element, one of several of its name, in what is known of these; -1 if it is not known. Of some kinds only
// one is.
func (e *element) index(all, known []*element) int {
	if len(all) == len(known) {
		return slices.Index(all, e)
	}
	return slices.IndexFunc(known, e.says)
}

func has(e *element, a xml.Attr) bool {
	return slices.ContainsFunc(e.attrs, func(b xml.Attr) bool { return a.Name == b.Name })
}

// says tells whether two elements have the same attributes.
func (e *element) says(other *element) bool {
	return len(e.attrs) == len(other.attrs) && !slices.ContainsFunc(e.attrs, func(a xml.Attr) bool { return !slices.Contains(other.attrs, a) })
}

// among finds an element, one of several of its name, in what these have become; nil if it is not there any more. One of another
// type is another one; a driver's is its image's.
func (e *element) among(peers, become []*element) *element {
	if len(peers) == 1 && len(become) == 1 && (e.name == "driver" || e.attr("type") == become[0].attr("type")) {
		return become[0]
	}
	for _, other := range become {
		if e.isDevice(other) {
			return other
		}
	}
	if n := slices.Index(peers, e); len(peers) == len(become) && e.says(become[n]) {
		return become[n]
	}
	return nil
}

// isDevice tells whether two elements are one device: by its alias, its target, its MAC address or its place on a bus.
func (e *element) isDevice(other *element) bool {
	for _, name := range []string{"alias", "mac", "address"} {
		if a, b := e.named(name), other.named(name); len(a) == 1 && len(b) == 1 && a[0].says(b[0]) {
			return true
		}
	}
	a, b := e.named("target"), other.named("target")
	return len(a) == 1 && len(b) == 1 && a[0].attr("dev") != "" && a[0].attr("dev") == b[0].attr("dev")
}
