//go:build acc

package virtualmachine_test

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// schemas are the RELAX NG schemas that libvirt itself validates definitions with.
const schemas = "/usr/share/libvirt/schemas"

// pattern is a node of such a schema.
type pattern struct {
	XMLName  xml.Name
	Name     string    `xml:"name,attr"`
	Text     string    `xml:",chardata"`
	Children []pattern `xml:",any"`
}

// grammar are the named patterns of all schemas.
type grammar map[string][]pattern

func readGrammar(t *testing.T) grammar {
	t.Helper()
	all := grammar{}
	for _, name := range []string{"basictypes", "cputypes", "domaincommon", "networkcommon", "nwfilter_params", "storagecommon", "privatedata"} {
		text, err := os.ReadFile(filepath.Join(schemas, name+".rng"))
		if err != nil {
			t.Fatal(err)
		}
		var root pattern
		if err := xml.Unmarshal(text, &root); err != nil {
			t.Fatal(err)
		}
		for _, c := range root.Children {
			if c.XMLName.Local == "define" {
				all[c.Name] = append(all[c.Name], c.Children...)
			}
		}
	}
	return all
}

// within calls f for each element and attribute directly in patterns, and for the names of the types of their text.
func (g grammar) within(patterns []pattern, seen map[string]bool, f func(kind, name string, p pattern)) {
	for _, p := range patterns {
		switch kind := p.XMLName.Local; kind {
		case "element", "attribute":
			f(kind, p.Name, p)
		case "ref":
			f(kind, p.Name, p)
			if !seen[p.Name] {
				seen[p.Name] = true
				g.within(g[p.Name], seen, f)
			}
		default:
			g.within(p.Children, seen, f)
		}
	}
}

// types are the named patterns that a pattern's text may have, without those of its elements and attributes.
func (g grammar) types(patterns []pattern) (all []string) {
	g.within(patterns, map[string]bool{}, func(kind, name string, _ pattern) {
		if kind == "ref" {
			all = append(all, name)
		}
	})
	return all
}

// opening are libvirt's types of what names a file, a device, a socket or a program.
var opening = []string{"absFilePath", "absDirPath", "filePath", "dirPath", "relFilePath", "devicePath", "deviceName", "diskSource", "unixSocket"}

// Each element of libvirt's schema of domains outside of <devices>, with each of its attributes, is tried in domain_xml, with a path: what
// is not in its list is refused, and nothing in the list has a type that names something of the host.
func TestAccVirtualMachine_DomainXMLTakesNothingOfTheSchemaThatOpens(t *testing.T) {
	g := readGrammar(t)
	tried, taken, refused := 0, 0, 0
	var walk func(chain []string, patterns []pattern, depth int)
	try := func(chain []string, inner string, types []string) {
		tried++
		text := inner
		for _, name := range slices.Backward(chain) {
			text = fmt.Sprintf("<%s>%s</%s>", name, text, name)
		}
		opens := slices.ContainsFunc(opening, func(bad string) bool { return slices.Contains(types, bad) })
		switch err := domainxml.CheckDomain(text); {
		case err != nil && opens:
			refused++
		case err == nil && opens:
			t.Errorf("%s is taken, whose type is one of %v", text, types)
		case err == nil:
			taken++
		}
	}
	walk = func(chain []string, patterns []pattern, depth int) {
		g.within(patterns, map[string]bool{}, func(kind, name string, p pattern) {
			if kind != "element" || name == "" || name == "devices" || name == "metadata" {
				return
			}
			try(chain, fmt.Sprintf("<%s/>", name), nil)
			try(chain, fmt.Sprintf("<%s>/etc/shadow</%s>", name, name), g.types(p.Children))
			g.within(p.Children, map[string]bool{}, func(kind, attribute string, a pattern) {
				if kind == "attribute" && attribute != "" {
					for _, value := range []string{"/etc/shadow", "1", "on"} {
						try(chain, fmt.Sprintf("<%s %s=%q/>", name, attribute, value), g.types(a.Children))
					}
				}
			})
			if depth > 0 {
				walk(append(slices.Clone(chain), name), p.Children, depth-1)
			}
		})
	}
	walk(nil, g["domain"][0].Children, 4)
	if tried < 1000 || taken < 100 || refused < 10 {
		t.Errorf("of the schema %d were tried, %d taken, and only %d refused that open something", tried, taken, refused)
	}
}
