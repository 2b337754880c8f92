package kubevirt

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mostNodes and deepest limit what aliases can make of a short text: they may also refer to what they are in.
const mostNodes, deepest = 50_000, 100

// Manifest is YAML, with one object or several.
type Manifest struct {
	Text string
	// Written is set if a user has written the text: only then its lines say anything.
	Written bool
}

// parser makes nodes of manifests.
type parser struct {
	problems *[]error
	written  bool
	// left is how many more nodes it makes, and depth in how many it is.
	left, depth int
}

// parse reads the objects of a manifest. Tabs that indent, as in older documents, count as in those: up to the next multiple of 8 columns.
func parse(m Manifest, problems *[]error) (all []*node, err error) {
	p := &parser{problems: problems, written: m.Written, left: mostNodes}
	all, err = p.objects(m.Text)
	if err == nil || !indentedByTab.MatchString(m.Text) || blockScalar.MatchString(m.Text) {
		return all, err
	}
	if expanded, failed := p.objects(expandTabs(m.Text)); failed == nil {
		return expanded, nil
	}
	return nil, err
}

// Texts of several lines have tabs of their own.
var (
	indentedByTab = regexp.MustCompile(`(?m)^ *\t`)
	blockScalar   = regexp.MustCompile(`(?m)[|>][-+0-9]*\s*$`)
)

func expandTabs(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		for {
			spaces := len(line) - len(strings.TrimLeft(line, " "))
			if !strings.HasPrefix(line[spaces:], "\t") {
				break
			}
			line = line[:spaces] + strings.Repeat(" ", 8-spaces%8) + line[spaces+1:]
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// objects are those of a text, also the items of lists.
func (p *parser) objects(text string) (all []*node, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var parsed yaml.Node
		if err := decoder.Decode(&parsed); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("the manifest is no YAML: %w", err)
		}
		root, err := p.node(&parsed, "")
		if err != nil {
			return nil, err
		}
		if root.at("kind").or("") == "List" {
			all = append(all, root.each("items")...)
		} else if !root.isNull {
			all = append(all, root)
		}
	}
}

// node is what YAML has at a path.
func (p *parser) node(y *yaml.Node, path string) (n *node, err error) {
	for y.Kind == yaml.DocumentNode || y.Kind == yaml.AliasNode {
		if y.Kind == yaml.AliasNode {
			y = y.Alias
		} else {
			y = y.Content[0]
		}
	}
	p.left--
	p.depth++
	defer func() { p.depth-- }()
	if p.left < 0 || p.depth > deepest {
		return nil, fmt.Errorf("line %d: the manifest has more than %d values, or %d levels", y.Line, mostNodes, deepest)
	}
	n = &node{path: path, problems: p.problems, line: p.line(y)}
	switch y.Kind {
	case yaml.SequenceNode:
		for i, item := range y.Content {
			below, err := p.node(item, fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, below)
		}
	case yaml.MappingNode:
		n.fields = map[string]*node{}
		return n, p.mapping(n, y)
	default:
		n.text, n.isText, n.isNull = y.Value, y.Tag == "!!str", y.Tag == "!!null"
	}
	return n, nil
}

func (p *parser) line(y *yaml.Node) int {
	if !p.written {
		return 0
	}
	return y.Line
}

// mapping reads the fields of a mapping, and those that it merges (`<<`), which yield to its own and to those merged before.
func (p *parser) mapping(n *node, y *yaml.Node) error {
	var merged []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, path := y.Content[i], strings.TrimPrefix(n.path+"."+y.Content[i].Value, ".")
		isMerge := key.Tag == "!!merge"
		if isMerge {
			path = n.path
		}
		below, err := p.node(y.Content[i+1], path)
		if err != nil {
			return err
		}
		switch {
		case isMerge:
			merged = append(append(merged, below), below.items...)
		case n.fields[key.Value] != nil:
			return fmt.Errorf("line %d: %s is there twice", key.Line, path)
		default:
			below.line = p.line(key)
			n.fields[key.Value], n.names = below, append(n.names, key.Value)
		}
	}
	for _, from := range merged {
		for _, name := range from.names {
			if n.fields[name] == nil {
				n.fields[name], n.names = from.fields[name], append(n.names, name)
			}
		}
	}
	return nil
}
