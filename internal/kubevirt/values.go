package kubevirt

import (
	_ "embed"
	"reflect"
	"strings"
)

// values are attributes by their names. What is absent has no name.
type values map[string]any

// Shape is the type of what Convert returns, in JSON: objects with the types of their attributes, of which that of * is a map's; string,
// number, bool, and lists.
//
//go:embed shape.json
var Shape string

// put sets an attribute below, by a path of this package's own. Nothing becomes of nil.
func (v values) put(path string, value any) {
	if of := reflect.ValueOf(value); !of.IsValid() || of.Kind() == reflect.Pointer && of.IsNil() {
		return
	}
	if name, rest, is := strings.Cut(path, "/"); is {
		v.below(name).put(rest, value)
	} else {
		v[path] = value
	}
}

// below are the attributes of one of them, which is added if it is absent.
func (v values) below(name string) values {
	if v[name] == nil {
		v[name] = values{}
	}
	return v[name].(values)
}

// row is how a field is carried over: the first of some paths that is there, from below a field, the preference or the instance type,
// becomes an attribute. as is the kind of value: word, flag, number, size, {} for an element that is there unless it is disabled, or = with
// what stands for it, unless it is off; any other one is the list of its words.
type row struct{ from, to, as string }

// carry carries fields over.
func (c *converter) carry(base *node, to values, rows ...row) {
	for _, r := range rows {
		n := c.first(base, r.from)
		switch text, isConstant := strings.CutPrefix(r.as, "="); {
		case n == nil:
		case isConstant && n.state() == "on":
			to.put(r.to, text)
		case isConstant:
		case r.as == "{}" && n.state() == "on":
			to.put(r.to, values{})
		case r.as == "{}":
		case r.as == "word":
			to.put(r.to, n.word())
		case r.as == "flag":
			to.put(r.to, n.flag())
		case r.as == "number":
			to.put(r.to, n.number())
		case r.as == "size":
			to.put(r.to, n.size())
		default:
			to.put(r.to, n.one(strings.Fields(r.as)...))
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
		n := at.at(path)
		if found == nil {
			found = n
		} else if at == c.preference {
			n.skip()
		}
	}
	return found
}
