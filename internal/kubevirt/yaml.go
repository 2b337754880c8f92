package kubevirt

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Manifest is YAML, with one object or several.
type Manifest struct {
	Text string
	// Written is set if a user has written the text: only then its lines say anything.
	Written bool
}

// Tabs that indent, as in older documents, count up to the next multiple of 8 columns. Texts of several lines have tabs of their own.
var (
	indentedByTab = regexp.MustCompile(`(?m)^ *\t`)
	blockScalar   = regexp.MustCompile(`(?m)[|>][-+0-9]*\s*$`)
)

// parse reads the objects of a text, also the items of lists.
func parse(text string, of *manifest) (all []*node, err error) {
	all, err = objects(text, of)
	if err == nil || blockScalar.MatchString(text) {
		return all, err
	}
	for indentedByTab.MatchString(text) {
		text = indentedByTab.ReplaceAllStringFunc(text, func(tab string) string { return strings.Repeat(" ", (len(tab)+7)/8*8) })
	}
	if expanded, failed := objects(text, of); failed == nil {
		return expanded, nil
	}
	return nil, err
}

func objects(text string, of *manifest) (all []*node, err error) {
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var (
			document yaml.Node
			plain    any
			root     *node
			typed    *yaml.TypeError
		)
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil {
			err = document.Decode(&plain) // refuses aliases that never end, or make too much of a short text
		}
		if err == nil {
			err = document.Decode(&root)
		}
		switch {
		case errors.As(err, &typed):
			return nil, errors.New(typed.Errors[0])
		case err != nil:
			return nil, fmt.Errorf("the manifest is no YAML: %w", err)
		case root == nil:
			continue
		}
		if root.of = of; root.at("kind").or("") != "List" {
			all = append(all, root)
			continue
		}
		for _, item := range root.each("items") {
			item.parent, item.name, item.of = nil, "", of
			all = append(all, item)
		}
	}
}

// UnmarshalYAML implements yaml.Unmarshaler. The library adds what a mapping merges, and calls it for no null.
func (n *node) UnmarshalYAML(y *yaml.Node) (err error) {
	n.line = y.Line
	switch y.Kind {
	case yaml.SequenceNode:
		err = y.Decode(&n.items)
		for i, item := range n.items {
			if item != nil {
				item.parent, item.name = n, fmt.Sprintf("[%d]", i)
			}
		}
	case yaml.MappingNode:
		n.fields = map[string]*node{}
		err = y.Decode(&n.fields)
		maps.DeleteFunc(n.fields, func(_ string, field *node) bool { return field == nil })
		for name, field := range n.fields {
			field.parent, field.name = n, name
		}
		for i := 0; i < len(y.Content); i += 2 {
			if field := n.fields[y.Content[i].Value]; field != nil {
				field.line = y.Content[i].Line
			}
		}
	default:
		n.text = y.Value
	}
	return err
}
