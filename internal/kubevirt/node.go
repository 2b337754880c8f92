package kubevirt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// node is a field of a manifest, which knows whether anything has read it: what nothing has read is not carried over, and is said. A field
// that is absent or null is nil, which all methods take.
type node struct {
	// parent is nil for an object as a whole, whose name stands before the paths of its fields; none does for the machine's.
	parent *node
	name   string
	// of is nil for a field of an object.
	of *manifest
	// line counts from 1.
	line int
	// One of them: the fields by their names, the items, or a text.
	fields map[string]*node
	items  []*node
	text   string

	read bool
	// reason is why the field is not carried over, although it was read.
	reason string
}

// manifest is what the fields of an object have in common.
type manifest struct {
	isWritten bool
	problems  *[]error
}

// path is where the field is in its object.
func (n *node) path() string {
	path := n.name
	for at := n; at.parent != nil; at = at.parent {
		joint := "."
		if at.parent.parent == nil {
			joint = ": "
		}
		if at.parent.name == "" || strings.HasPrefix(at.name, "[") {
			joint = ""
		}
		path = at.parent.name + joint + path
	}
	return path
}

// refuse is an error of the field, which says where, as the user's editor counts lines.
func (n *node) refuse(format string, args ...any) {
	object, where := n, n.path()
	for object.parent != nil {
		object = object.parent
	}
	if object.of.isWritten {
		where = fmt.Sprintf("line %d: %s", n.line, where)
	}
	*object.of.problems = append(*object.of.problems, fmt.Errorf("%s: "+format, append([]any{where}, args...)...))
}

// leave has the field be said as not carried over.
func (n *node) leave(reason string) {
	if n != nil {
		n.reason = cmp.Or(n.reason, reason)
	}
}

// at is a field below.
func (n *node) at(path string) *node {
	for name := range strings.SplitSeq(path, ".") {
		if n != nil {
			n = n.fields[name]
		}
	}
	return n
}

// set is at for a field whose presence has a meaning, as that of `disk: {}`.
func (n *node) set(path string) *node {
	found := n.at(path)
	if found != nil {
		found.read = true
	}
	return found
}

// only is the one of some fields that is there. A second one is refused.
func (n *node) only(names ...string) (found *node) {
	for _, name := range names {
		switch at := n.set(name); {
		case at == nil:
		case found != nil:
			at.refuse("it excludes %s", found.name)
		default:
			found = at
		}
	}
	return found
}

// skip takes fields as a whole, or all: they are carried over, or have no meaning here.
func (n *node) skip(paths ...string) {
	for _, path := range paths {
		n.at(path).skip()
	}
	if n != nil && len(paths) == 0 {
		n.read = true
		for _, below := range n.below() {
			below.skip()
		}
	}
}

// keys are the names of the fields, in the order of the manifest.
func (n *node) keys() []string {
	if n == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(n.fields), func(a, b string) int {
		return cmp.Or(cmp.Compare(n.fields[a].line, n.fields[b].line), cmp.Compare(a, b))
	})
}

// below are the fields or items.
func (n *node) below() (all []*node) {
	for _, name := range n.keys() {
		all = append(all, n.fields[name])
	}
	for _, item := range n.items {
		if item != nil {
			all = append(all, item)
		}
	}
	return all
}

// each are the items of a list.
func (n *node) each(path string) []*node {
	list := n.at(path)
	if list == nil {
		return nil
	}
	if list.fields != nil || list.text != "" {
		list.refuse("it is no list")
		return nil
	}
	list.read = true
	return list.below()
}

// word is a text, nil if it is absent or empty.
func (n *node) word() *string {
	if n == nil {
		return nil
	}
	if n.fields != nil || n.items != nil {
		n.refuse("it is no text")
	}
	if n.read = true; n.text == "" {
		return nil
	}
	return &n.text
}

// named is the name that a reference to something must have.
func (n *node) named(what string) string {
	name := n.at("name").or("")
	if name == "" {
		n.refuse("it names no %s", what)
	}
	return name
}

// or is a text, or what stands for an absent one.
func (n *node) or(otherwise string) string { return *cmp.Or(n.word(), &otherwise) }

// one is a text that is one of those given.
func (n *node) one(of ...string) *string {
	text := n.word()
	if text != nil && !slices.Contains(of, *text) {
		n.refuse("%.40q is none of %s", *text, strings.Join(of, ", "))
	}
	return text
}

// flag is a boolean, also in the words that YAML 1.1 has for one.
func (n *node) flag() *bool {
	text := n.word()
	if text == nil {
		return nil
	}
	switch strings.ToLower(*text) {
	case "true", "yes", "on":
		return new(true)
	case "false", "no", "off":
	default:
		n.refuse("%.40q is neither true nor false", *text)
	}
	return new(false)
}

// isOn and isOff report whether a boolean, or the feature that has it as enabled, is there with that value.
func (n *node) isOn() bool  { return n != nil && n.state() == "on" }
func (n *node) isOff() bool { return n != nil && n.state() == "off" }

// state is on, unless the boolean, or that of the feature's enabled, is false.
func (n *node) state() string {
	is := n.at("enabled").flag()
	if n.read = true; n.fields == nil {
		is = n.flag()
	}
	if is != nil && !*is {
		return "off"
	}
	return "on"
}

// number is a whole number from 0.
func (n *node) number() *int64 {
	text := n.word()
	if text == nil {
		return nil
	}
	i, err := strconv.ParseInt(*text, 10, 32)
	if err != nil || i < 0 || strconv.FormatInt(i, 10) != *text {
		n.refuse("%.40q is no whole number", *text)
		return nil
	}
	return &i
}

// size is a Kubernetes quantity.
func (n *node) size() *string {
	text := n.word()
	if text == nil {
		return nil
	}
	if _, err := tfvalue.NewQuantity(*text).KiB(); err != nil {
		n.refuse("%v", err)
	}
	return text
}

// unread are the fields that nothing has read, as high as possible: one below which none was read stands for all of them. isTouched is set
// if the field, or one below, was read.
func (n *node) unread() (all []*node, isTouched bool) {
	below := n.below()
	for _, field := range below {
		left, is := field.unread()
		all, isTouched = append(all, left...), isTouched || is
	}
	switch {
	case n.reason != "" && isTouched:
		all = append([]*node{n}, all...)
	case n.reason != "":
		all = []*node{n}
	case n.fields != nil && len(below) == 0 && (n.read || slices.Contains(neutral, n.name)):
		all = nil
	case !n.read && !isTouched && len(below) != 1:
		all = []*node{n}
	}
	return all, isTouched || n.read || n.reason != ""
}

// neutral are fields that say nothing when they are empty.
var neutral = strings.Fields("resources requests limits devices firmware machine features cpu memory metadata labels annotations spec")
