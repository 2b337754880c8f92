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

// piece is an element or an attribute of a domain's XML that libvirtxml does not know, because libvirt is newer or because it belongs
// to another tool.
type piece struct {
	// name is for messages, text is the XML of the piece.
	name, text string
	// at is its offset in the XML that is written.
	at int
}

// unknownTo returns the pieces of a domain's stored XML that libvirtxml does not know, with their offsets in the changed XML, which
// now returns. Pieces of elements that were removed are dropped.
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
	add := func(name, text string, at int) {
		same := func(p piece) bool { return p.name == name && p.at == at }
		if !strings.HasPrefix(text, " ") || !slices.ContainsFunc(all, same) { // an attribute must be unique
			all = append(all, piece{name, text, at})
		}
	}
	roots[0].unknown(stored, roots[1], roots[2], add)
	return all, changed, nil
}

// keepUnknown changes a domain by f, which returns its new XML, and preserves what libvirtxml does not know, as far as the result is
// well-formed.
func keepUnknown(d *libvirtxml.Domain, stored string, f func() (string, error)) (string, error) {
	all, text, err := unknownTo(d, stored, f)
	if err != nil {
		return "", err
	}
	if whole := insert(text, all); wellFormed(whole) {
		text = whole
	}
	return text, nil
}

// insert inserts pieces into a text at their offsets.
func insert(text string, all []piece) string {
	slices.SortStableFunc(all, func(a, b piece) int { return b.at - a.at })
	for n := 0; n < len(all); {
		same := n // several pieces at one offset keep their order
		for ; same < len(all) && all[same].at == all[n].at; same++ {
		}
		var here strings.Builder
		for _, p := range all[n:same] {
			here.WriteString(p.text)
		}
		text, n = text[:all[n].at]+here.String()+text[all[n].at:], same
	}
	return text
}

// wellFormed reports whether libvirt can parse a text. Duplicate attributes are checked here, because Go accepts them.
func wellFormed(text string) bool {
	for tokens := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := tokens.Token()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		start, _ := token.(xml.StartElement)
		for n, a := range start.Attr {
			if has(&element{attrs: start.Attr[:n]}, a) {
				return false
			}
		}
	}
}

// element is the outline of an XML element in a text. Names are without prefix, because libvirtxml writes namespaces differently.
type element struct {
	name     string
	attrs    []xml.Attr
	children []*element
	// start and end are the offsets of the whole element, open is where an attribute can be added, and inner where a child can be.
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

// unknown adds the unknown pieces of an element. known is the element as libvirtxml knows it, now the changed element; nil if it was
// removed. Pieces of a source are dropped if the source has changed.
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
		_ = xml.EscapeText(&value, []byte(a.Value)) // a strings.Builder never returns an error
		add(name+" of "+e.name, fmt.Sprintf(` %s="%s"`, name, value.String()), now.open)
	}
	of := map[string]kin{}
	for _, c := range e.children {
		k, ok := of[c.name]
		if !ok {
			k = kinOf(e.named(c.name), known.named(c.name), now.named(c.name))
			of[c.name] = k
		}
		if is := k.known[c]; is != nil {
			c.unknown(text, is, k.now[is], add)
		} else if k.stay {
			add(c.name+" of "+e.name, text[c.start:c.end], now.inner)
		}
	}
}

// kin maps the child elements of one name to their counterparts.
type kin struct {
	// known maps elements to what libvirtxml knows of them, now maps that to the changed elements; stay is true if elements that are
	// entirely unknown are kept.
	known, now pairs
	stay       bool
}

func kinOf(all, known, now []*element) kin {
	return kin{recognized(all, known), matchElements(known, now), (len(known) == 0) == (len(now) == 0)}
}

// pairs maps an element to its counterpart in another text, and back: each element is in at most one pair.
type pairs map[*element]*element

func (p pairs) join(a, b *element) { p[a], p[b] = b, a }

// find joins equal elements of two lists, in their order.
func (p pairs) find(some, others []*element, same func(a, b *element) bool) {
	for _, a := range some {
		n := slices.IndexFunc(others, func(b *element) bool { return p[b] == nil && same(a, b) })
		if p[a] == nil && n >= 0 {
			p.join(a, others[n])
		}
	}
}

// recognized joins elements with what libvirtxml knows of them. If it knows fewer, as with kinds of which it reads only one, the first
// candidate is joined.
func recognized(all, known []*element) pairs {
	p := pairs{}
	if len(all) == len(known) {
		for n := range all {
			p.join(all[n], known[n])
		}
		return p
	}
	p.find(all, known, (*element).covers)
	p.find(all, known, func(_, _ *element) bool { return true }) // an element that libvirtxml writes may combine several
	return p
}

func has(e *element, a xml.Attr) bool {
	return slices.ContainsFunc(e.attrs, func(b xml.Attr) bool { return a.Name == b.Name })
}

// says reports whether two elements have the same attributes.
func (e *element) says(other *element) bool {
	return len(e.attrs) == len(other.attrs) && e.covers(other)
}

// covers reports whether an element has all the attributes of another one.
func (e *element) covers(other *element) bool {
	return !slices.ContainsFunc(other.attrs, func(a xml.Attr) bool { return !slices.Contains(e.attrs, a) })
}

// identities are the children that identify a device, the most reliable first.
var identities = []string{"alias", "mac", "address"}

// matchElements joins elements with their counterparts in a changed domain. Elements without an identity are joined by position if their
// attributes are equal, or if there is only one and it has the same type; a single <driver> is always joined.
func matchElements(before, now []*element) pairs {
	p := pairs{}
	for _, by := range identities {
		p.find(before, now, func(a, b *element) bool { return a.isDevice(b, by) })
	}
	for n, a := range before {
		if len(before) != len(now) || a.hasIdentity() || now[n].hasIdentity() {
			continue
		}
		if b := now[n]; a.says(b) || len(now) == 1 && (a.name == "driver" || a.attr("type") == b.attr("type")) {
			p.join(a, b)
		}
	}
	return p
}

func (e *element) hasIdentity() bool {
	return slices.ContainsFunc(identities, func(by string) bool { return e.identity(by) != "" })
}

// isDevice reports whether two elements are the same device by one of the identities. A device with another alias at the same address
// is another device.
func (e *element) isDevice(other *element, by string) bool {
	id, a, b := e.identity(by), e.identity("alias"), other.identity("alias")
	return id != "" && id == other.identity(by) && (by != "address" || a == "" || b == "" || a == b)
}

// identity returns one of the identities of an element; empty if it has none. In place of an alias disks have their key, which may be
// their target, and controllers their index. An address with only a type identifies nothing.
func (e *element) identity(by string) string {
	one := func(name string) *element {
		if all := e.named(name); len(all) == 1 {
			return all[0]
		}
		return &element{}
	}
	alias, target, place := one("alias").attr("name"), one("target").attr("dev"), one("address").attrs
	switch {
	case by == "mac":
		return one(by).attr("address")
	case by == "address" && len(place) < 2:
		return ""
	case by == "address":
		return fmt.Sprint(place)
	case e.name == "disk" && !strings.HasPrefix(alias, diskAlias) && target != "":
		return diskAlias + target
	case e.name == "controller" && e.attr("index") != "":
		return e.attr("type") + e.attr("index")
	}
	return alias
}
