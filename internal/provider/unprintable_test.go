package provider

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// hostile has a character that changes the direction of writing, one without width, and one that controls a terminal.
const hostile = "web\u202e\u200b\x1b"

// In every attribute of every resource, data source and the provider itself, a text with invisible characters is refused at its path;
// except for texts with any content, and secrets, which no error may have.
func TestUnprintable_EveryAttributeIsChecked(t *testing.T) {
	server := NewServer(Release{Version: "test"})
	all, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	each := func(name string, schema *tfprotov6.Schema, validate func(*tfprotov6.DynamicValue) []*tfprotov6.Diagnostic) {
		typ := schema.ValueType().(tftypes.Object)
		for _, v := range hostileValues(typ, tftypes.NewAttributePath()) {
			config, err := tfprotov6.NewDynamicValue(typ, v.value)
			if err != nil {
				t.Fatal(err)
			}
			attribute := attributeOf(v.at)
			refused := slices.ContainsFunc(validate(&config), func(d *tfprotov6.Diagnostic) bool {
				return d.Summary == "Unprintable character" && d.Attribute.Equal(v.at) && strings.Contains(d.Detail, `web\u202e\u200b\x1b`)
			})
			if want := !isText(v.at) && !isSecret(attribute); want && !refused {
				t.Errorf("%s: %s is not checked", name, v.at)
			}
			tried++
		}
	}
	each("provider", all.Provider, func(config *tfprotov6.DynamicValue) []*tfprotov6.Diagnostic {
		answer, _ := server.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{Config: config})
		return answer.Diagnostics
	})
	for name, schema := range all.ResourceSchemas {
		each(name, schema, func(config *tfprotov6.DynamicValue) []*tfprotov6.Diagnostic {
			answer, _ := server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{TypeName: name, Config: config})
			return answer.Diagnostics
		})
	}
	for name, schema := range all.DataSourceSchemas {
		each(name, schema, func(config *tfprotov6.DynamicValue) []*tfprotov6.Diagnostic {
			answer, _ := server.ValidateDataResourceConfig(t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{TypeName: name, Config: config})
			return answer.Diagnostics
		})
	}
	if tried < 100 {
		t.Errorf("only %d attributes were tried", tried)
	}
}

type hostileValue struct {
	value tftypes.Value
	at    *tftypes.AttributePath
}

// hostileValues are values of a type each of which has one hostile text and is otherwise null.
func hostileValues(typ tftypes.Type, at *tftypes.AttributePath) (all []hostileValue) {
	wrap := func(t, element tftypes.Type, at *tftypes.AttributePath, in func(tftypes.Value) any) {
		for _, v := range hostileValues(element, at) {
			all = append(all, hostileValue{tftypes.NewValue(t, in(v.value)), v.at})
		}
	}
	switch t := typ.(type) {
	case tftypes.Object:
		for name, element := range t.AttributeTypes {
			if name == "volume" && element.Is(tftypes.Object{}) {
				continue
			}
			wrap(t, element, at.WithAttributeName(name), func(v tftypes.Value) any {
				fields := map[string]tftypes.Value{}
				for other, typ := range t.AttributeTypes {
					fields[other] = tftypes.NewValue(typ, nil)
				}
				fields[name] = v
				return fields
			})
		}
	case tftypes.Map:
		wrap(t, t.ElementType, at.WithElementKeyString("k"), func(v tftypes.Value) any { return map[string]tftypes.Value{"k": v} })
		all = append(all, hostileValue{
			tftypes.NewValue(t, map[string]tftypes.Value{hostile: tftypes.NewValue(t.ElementType, nil)}), at.WithElementKeyString(hostile),
		})
	case tftypes.List:
		wrap(t, t.ElementType, at.WithElementKeyInt(0), func(v tftypes.Value) any { return []tftypes.Value{v} })
	case tftypes.Set:
		wrap(t, t.ElementType, at, func(v tftypes.Value) any { return []tftypes.Value{v} })
	default:
		if typ.Is(tftypes.String) {
			all = append(all, hostileValue{tftypes.NewValue(typ, hostile), at})
		}
	}
	return all
}

// Texts for people and guests may have several lines, and a name may have any letters.
func TestUnprintable_LeavesTextsAlone(t *testing.T) {
	all := schemas(NewServer(Release{Version: "test"}))(t.Context())
	schema := all.ResourceSchemas["virtclaim_virtual_machine"]
	typ := schema.ValueType().(tftypes.Object)
	fields := map[string]tftypes.Value{}
	for name, of := range typ.AttributeTypes {
		fields[name] = tftypes.NewValue(of, nil)
	}
	fields["name"] = tftypes.NewValue(tftypes.String, "wéb-漢字")
	fields["title"] = tftypes.NewValue(tftypes.String, "a title: \"quoted\", 🖥")
	fields["description"] = tftypes.NewValue(tftypes.String, "two\n\tlines")
	config, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, fields))
	if err != nil {
		t.Fatal(err)
	}
	if found := unprintable(schema, &config); len(found) > 0 {
		t.Errorf("%s: %s", found[0].Attribute, found[0].Detail)
	}
}

// A kernel's command line is one line: a character that XML does not support would be stored as another one.
func TestUnprintable_CommandLine(t *testing.T) {
	schema := schemas(NewServer(Release{Version: "test"}))(t.Context()).ResourceSchemas["virtclaim_virtual_machine"]
	typ := schema.ValueType().(tftypes.Object)
	for cmdline, refused := range map[string]bool{"console=ttyS0 a=\"b c\"": false, "a\x1b[2J": true, "a\nb": true, "a\x00": true} {
		for _, v := range hostileValues(typ, tftypes.NewAttributePath()) {
			if attributeOf(v.at) != "cmdline" {
				continue
			}
			value, err := tftypes.Transform(v.value, func(at *tftypes.AttributePath, now tftypes.Value) (tftypes.Value, error) {
				if at.Equal(v.at) {
					return tftypes.NewValue(tftypes.String, cmdline), nil
				}
				return now, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			config, err := tfprotov6.NewDynamicValue(typ, value)
			if err != nil {
				t.Fatal(err)
			}
			if found := unprintable(schema, &config); (len(found) > 0) != refused {
				t.Errorf("%q: %v", cmdline, found)
			}
		}
	}
}

// A machine or disk is neither created nor renamed with a name that is reserved for virtclaim's own objects. An existing one is kept and
// can be destroyed.
func TestProvider_ReservedNamesOnlyForWhatIsMade(t *testing.T) {
	server := NewServer(Release{Version: "test"})
	all, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		resource, attribute, before, after string
		refused                            bool
	}{
		{"virtclaim_virtual_machine", "name", "", "web", false},
		{"virtclaim_virtual_machine", "name", "", "virtclaim", false},
		{"virtclaim_virtual_machine", "name", "", "virtclaim-mutex", true},
		{"virtclaim_virtual_machine", "name", "", "virtclaim-0123456789abcdef", true},
		{"virtclaim_virtual_machine", "name", "web", "virtclaim-mutex", true},
		{"virtclaim_virtual_machine", "name", "virtclaim-web", "virtclaim-web", false},
		{"virtclaim_virtual_machine", "name", "virtclaim-mutex", "", false},
		{"virtclaim_disk", "name", "", "virtclaim-base-0", true},
		{"virtclaim_disk", "name", "virtclaim-a", "virtclaim-a", false},
		{"virtclaim_disk", "name", "virtclaim-a", "", false},
		{"virtclaim_disk", "name_prefix", "", "virtclaim-", true},
	} {
		typ := all.ResourceSchemas[row.resource].ValueType().(tftypes.Object)
		value := func(name string) *tfprotov6.DynamicValue {
			v := tftypes.NewValue(typ, nil)
			if name != "" {
				fields := map[string]tftypes.Value{}
				for other, of := range typ.AttributeTypes {
					fields[other] = tftypes.NewValue(of, nil)
				}
				fields["host"], fields[row.attribute] = tftypes.NewValue(tftypes.String, "a"), tftypes.NewValue(tftypes.String, name)
				v = tftypes.NewValue(typ, fields)
			}
			d, err := tfprotov6.NewDynamicValue(typ, v)
			if err != nil {
				t.Fatal(err)
			}
			return &d
		}
		answer, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
			TypeName: row.resource, PriorState: value(row.before), ProposedNewState: value(row.after), Config: value(row.after),
		})
		if err != nil {
			t.Fatal(err)
		}
		refused := slices.ContainsFunc(answer.Diagnostics, func(d *tfprotov6.Diagnostic) bool {
			return d.Summary == "Reserved name" && d.Attribute.Equal(tftypes.NewAttributePath().WithAttributeName(row.attribute))
		})
		if refused != row.refused {
			t.Errorf("%v: %v", row, answer.Diagnostics)
		}
	}
}
