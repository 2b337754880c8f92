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
	add := func(name, text string, at int) {
		same := func(p piece) bool { return p.name == name && p.at == at }
		if !strings.HasPrefix(text, " ") || !slices.ContainsFunc(all, same) { // an attribute is there once
			all = append(all, piece{name, text, at})
		}
	}
	roots[0].unknown(stored, roots[1], roots[2], add)
	return all, changed, nil
}

// keepUnknown changes a domain by f, which gives its new XML, without losing what libvirtxml does not know, where it can be read.
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

// insert puts pieces in their places in a text.
func insert(text string, all []piece) string {
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
	return text
}

// wellFormed tells whether libvirt can read a text. Go takes an attribute that is there twice.
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

// kin are the elements of one name in another one.
type kin struct {
	// known is what is known of them, now what that has become; stay tells that those of which nothing is known go on.
	known, now pairs
	stay       bool
}

func kinOf(all, known, now []*element) kin {
	return kin{recognized(all, known), become(known, now), (len(known) == 0) == (len(now) == 0)}
}

// pairs lead from an element to the one of another text that it is, and back: each is in one pair at most.
type pairs map[*element]*element

func (p pairs) join(a, b *element) { p[a], p[b] = b, a }

// find joins those of two lists that are the same, in their order.
func (p pairs) find(some, others []*element, same func(a, b *element) bool) {
	for _, a := range some {
		n := slices.IndexFunc(others, func(b *element) bool { return p[b] == nil && same(a, b) })
		if p[a] == nil && n >= 0 {
			p.join(a, others[n])
		}
	}
}

// recognized joins elements with what is known of them. Of some kinds only one is: the first that it can be.
func recognized(all, known []*element) pairs {
	p := pairs{}
	if len(all) == len(known) {
		for n := range all {
			p.join(all[n], known[n])
		}
		return p
	}
	p.find(all, known, (*element).covers)
	p.find(all, known, func(_, _ *element) bool { return true }) // what is known may be made of several
	return p
}

func has(e *element, a xml.Attr) bool {
	return slices.ContainsFunc(e.attrs, func(b xml.Attr) bool { return a.Name == b.Name })
}

// says tells whether two elements have the same attributes.
func (e *element) says(other *element) bool {
	return len(e.attrs) == len(other.attrs) && e.covers(other)
}

// covers tells whether an element has all the attributes of another one.
func (e *element) covers(other *element) bool {
	return !slices.ContainsFunc(other.attrs, func(a xml.Attr) bool { return !slices.Contains(e.attrs, a) })
}

// identities are what tells a device from others, the surest first.
var identities = []string{"alias", "mac", "address"}

// become joins elements with what they are in a changed domain, those that are there still. Without an identity it is by
// position, or as the only one of its type; a driver's is its image's.
func become(before, now []*element) pairs {
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

// isDevice tells whether two elements are one device by one of the identities. What has another alias is another one in its place.
func (e *element) isDevice(other *element, by string) bool {
	id, a, b := e.identity(by), e.identity("alias"), other.identity("alias")
	return id != "" && id == other.identity(by) && (by != "address" || a == "" || b == "" || a == b)
}

// identity is one of the identities of an element; empty if it has none. In place of an alias disks have their key, which
// may be their target, and controllers their number. An address that has but a type is nobody's own.
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
