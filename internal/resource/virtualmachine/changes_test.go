package virtualmachine_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/suite"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/resource/virtualmachine"
)

var update = flag.Bool("update", false, "regenerate the table of the guide")

// effect is the effect of a change of an attribute on a running machine.
type effect string

const (
	// live: the guest keeps running and has the change.
	live effect = "live"
	// atStart: the guest keeps running without the change, and has it after the machine's next start.
	atStart effect = "at the next start"
	// replaced: it is another machine.
	replaced effect = "another machine"
	// stopped and started: it is shut down, or booted.
	stopped effect = "the machine is shut down"
	started effect = "the machine is started"
	// ours: nothing changes on the host; virtclaim uses the value from then on.
	ours effect = "no change of the machine"
	// never: it can't be removed from the configuration, because it is required or computed.
	never effect = "–"
)

// change is one attribute of the machine: what sets it, and the effects of a change and of its removal. All of these are effects on a
// running machine; one that is off is redefined.
type change struct {
	// attribute is its path, with a star for the keys of a map.
	attribute string
	// first, second and without are the machine's configuration at first, after the attribute has changed, and after its removal.
	first, second, without string
	change, removal        effect
	// boots is set if the change needs a guest that answers.
	boots bool
	// proof are the tests that prove the effect if a row can't: it needs a network, say, or is not in a domain's XML.
	proof []string
	// more is a remark for the table.
	more string
}

// The table in the guide has every attribute of the schema, in the schema's words, and TestAccVirtualMachine_TableOfChanges proves each
// row.
func TestChanges_TableHasAllAttributes(t *testing.T) {
	var resp resource.SchemaResponse
	virtualmachine.New().Schema(t.Context(), resource.SchemaRequest{}, &resp)
	want := leaves("", resp.Schema.Attributes)
	got := map[string]bool{}
	for _, c := range changes {
		got[c.attribute] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("the schema and the table differ (-schema +table):\n%s", diff)
	}
}

// Rows that TestAccVirtualMachine_TableOfChanges can't prove name an existing test.
func TestChanges_TableHasTests(t *testing.T) {
	var proofs []string
	for _, c := range changes {
		proofs = append(proofs, c.proof...)
	}
	suite.Has(t, proofs...)
}

// Another name requires a replacement while the machine runs. So does another machine type, and another host, where the machine can't be
// moved. None does by the schema.
func TestChanges_OnlyTheNameReplaces(t *testing.T) {
	var resp resource.SchemaResponse
	virtualmachine.New().Schema(t.Context(), resource.SchemaRequest{}, &resp)
	got := replacing(t, "", resp.Schema.Attributes)
	var table []string
	for _, c := range changes {
		if c.change == replaced && !strings.HasPrefix(c.attribute, "machine.") {
			table = append(table, c.attribute)
		}
	}
	if len(got) > 0 {
		t.Errorf("the schema replaces by %v", got)
	}
	if diff := cmp.Diff([]string{"name", "name_prefix"}, table); diff != "" {
		t.Errorf("-want +table:\n%s", diff)
	}
}

// replacing are the paths of all attributes with a plan modifier that requires a replacement.
func replacing(t *testing.T, at string, attributes map[string]schema.Attribute) (all []string) {
	t.Helper()
	for name, a := range attributes {
		switch a := a.(type) {
		case schema.SingleNestedAttribute:
			all = append(all, replacing(t, at+name+".", a.Attributes)...)
		case schema.MapNestedAttribute:
			all = append(all, replacing(t, at+name+".*.", a.NestedObject.Attributes)...)
		}
		modifiers := reflect.ValueOf(a).FieldByName("PlanModifiers")
		for n := range modifiers.Len() {
			if m := modifiers.Index(n).Interface().(planmodifier.Describer); strings.Contains(m.Description(t.Context()), "destroy and recreate") {
				all = append(all, at+name)
			}
		}
	}
	return all
}

// leaves are the paths of all attributes that a configuration can set and that have none below them.
func leaves(at string, attributes map[string]schema.Attribute) map[string]bool {
	all := map[string]bool{}
	for name, a := range attributes {
		switch a := a.(type) {
		case schema.SingleNestedAttribute:
			maps.Copy(all, leaves(at+name+".", a.Attributes))
		case schema.MapNestedAttribute:
			maps.Copy(all, leaves(at+name+".*.", a.NestedObject.Attributes))
		default:
			if a.IsRequired() || a.IsOptional() {
				all[at+name] = true
			}
		}
	}
	return all
}

func TestChanges_GuideHasTable(t *testing.T) {
	guide := filepath.Join("..", "..", "..", "templates", "guides", "changes.md")
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- the table -->\n", "<!-- end of the table -->\n"
	before, rest, found := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	if !found || !ends {
		t.Fatalf("%s does not say where its table is", guide)
	}
	want := before + begin + table() + end + after
	if *update {
		if err := os.WriteFile(guide, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("the guide's table is not this one; run the test with -update (-want +got):\n%s", diff)
	}
}

func table() string {
	text := "| attribute | another value | taken out | |\n|---|---|---|---|\n"
	for _, c := range slices.SortedFunc(slices.Values(changes), func(a, b change) int { return strings.Compare(a.attribute, b.attribute) }) {
		text += fmt.Sprintf("| `%s` | %s | %s | %s |\n", strings.ReplaceAll(c.attribute, "*", "<key>"), c.change, c.removal, c.more)
	}
	return text
}
