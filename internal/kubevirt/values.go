package kubevirt

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// values are attributes by their names. What is absent has no name.
type values map[string]any

// Shape is the type of what Convert returns, in JSON: objects with the types of their attributes, of which that of * is a map's; string,
// number, bool, and lists.
//
//go:embed shape.json
var Shape string

// put sets an attribute below, by a path of this package's own. Nothing becomes of nil, and of a pointer what it points to.
func (v values) put(path string, value any) {
	of := reflect.ValueOf(value)
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	name, rest, isBelow := strings.Cut(path, "/")
	switch {
	case !of.IsValid():
	case isBelow:
		v.below(name).put(rest, value)
	default:
		v[path] = of.Interface()
	}
}

// below are the attributes of one of them, which is added if it is absent.
func (v values) below(name string) values {
	if v[name] == nil {
		v[name] = values{}
	}
	return v[name].(values)
}

// xml are the values as libvirt has them: texts are attributes, but for that without a name, and the others are elements in them.
func (v values) xml() (attributes, inside string) {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		elements, _ := v[name].([]values)
		switch is := v[name].(type) {
		case values:
			elements = []values{is}
		case string:
			var text strings.Builder
			_ = xml.EscapeText(&text, []byte(is)) // a Builder takes all
			if name == "" {
				inside += text.String()
			} else {
				attributes += fmt.Sprintf(` %s="%s"`, name, &text)
			}
		}
		for _, element := range elements {
			if has, within := element.xml(); within == "" {
				inside += "<" + name + has + "/>\n"
			} else {
				inside += "<" + name + has + ">" + within + "</" + name + ">\n"
			}
		}
	}
	return attributes, inside
}

// row is how a field is carried over: the first of some paths that is there, from below a field, the preference or the instance type,
// becomes an attribute.
type row struct {
	from, to string
	as       func(*node) any
}

func word(n *node) any    { return n.word() }
func boolean(n *node) any { return n.flag() }
func number(n *node) any  { return n.number() }
func size(n *node) any    { return n.size() }
func state(n *node) any   { return n.state() }

// present is an element that is there unless it is disabled.
func present(n *node) any {
	if n.isOff() {
		return nil
	}
	return values{}
}

// oneOf is one of some words.
func oneOf(words ...string) func(*node) any { return func(n *node) any { return n.one(words...) } }

// always is a text of ours, unless the field is off.
func always(text string) func(*node) any {
	return func(n *node) any {
		if n.isOff() {
			return nil
		}
		return text
	}
}

// carry carries fields over.
func (c *converter) carry(base *node, to values, rows ...row) {
	for _, r := range rows {
		if n := c.first(base, r.from); n != nil {
			to.put(r.to, r.as(n))
		}
	}
}

// first is the first of some fields. Preferences yield to it.
func (c *converter) first(base *node, from string) (found *node) {
	for path := range strings.SplitSeq(from, "|") {
		at := base
		if rest, is := strings.CutPrefix(path, "preference."); is {
			at, path = c.preference, rest
		} else if rest, is := strings.CutPrefix(path, "instancetype."); is {
			at, path = c.instance, rest
		}
		if n := at.at(path); found == nil {
			found = n
		} else if at == c.preference {
			n.skip()
		}
	}
	return found
}
