package suite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// run is what go test -json says of a package: each word is an action, of a test if it has the form action=test.
func run(words string) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(words) {
		action, test, _ := strings.Cut(word, "=")
		fmt.Fprintf(&b, `{"Action":%q,"Package":"example.org/x/internal/a","Test":%q}`+"\n", action, test)
	}
	return b.String()
}

func TestVerdict_Table(t *testing.T) {
	wanted := []Test{{Name: "TestAccOne", Package: "a", Real: true}, {Name: "TestAccTwo", Package: "a", Real: true}}
	for events, want := range map[string]struct{ flake, err string }{
		"start pass=TestAccOne pass=TestAccTwo pass":                                              {},
		"start pass=TestAccOne skip=TestAccTwo pass":                                              {err: "a.TestAccTwo has not passed"},
		"start fail=TestAccOne/x fail=TestAccOne pass=TestAccTwo fail start pass=TestAccOne pass": {flake: "a.TestAccOne"},
		"start fail=TestAccOne pass=TestAccTwo fail start fail=TestAccOne fail":                   {flake: "a.TestAccOne", err: "a.TestAccOne has not passed"},
		"start fail=TestAccOne pass=TestAccTwo fail start skip=TestAccOne pass":                   {flake: "a.TestAccOne", err: "a.TestAccOne has not passed"},
		"start run=TestAccOne fail start pass=TestAccOne pass":                                    {err: "ended in the middle of a.TestAccOne"},
		"start fail=TestAccOne run=TestAccTwo fail start pass=TestAccOne pass=TestAccTwo pass":    {flake: "a.TestAccOne", err: "ended in the middle of a.TestAccTwo"},
		"start pass=TestAccOne pass=TestAccTwo fail start pass":                                   {err: "a failed, and none of its tests"},
		"start fail=TestAccOne pass=TestAccTwo fail start pass=TestAccOne fail":                   {flake: "a.TestAccOne", err: "a failed, and none of its tests"},
		"start pass":                 {err: "a.TestAccOne has not passed"},
		"start pass=TestAccOne pass": {err: "a.TestAccTwo has not passed"},
	} {
		flakes, err := Verdict(strings.NewReader(run(events)), wanted)
		if got := strings.Join(flakes, " "); got != want.flake {
			t.Errorf("%s: the flakes are %q, want %q", events, got, want.flake)
		}
		if (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%s: %v, want %q", events, err, want.err)
		}
	}
}

// Each test of real systems is in the core or a shard, and each of the core is in one race-….
func TestInTier_HasAllTests(t *testing.T) {
	all, shards := known(t)
	tiersOf := map[Test][]string{}
	for _, name := range tiers(shards) {
		tests, err := InTier(name, all, shards)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range tests {
			tiersOf[test] = append(tiersOf[test], name)
		}
	}
	for _, test := range all {
		if !test.Real || strings.HasPrefix(test.Name, "Benchmark") {
			continue
		}
		in := tiersOf[test]
		if inCore := slices.Contains(in, core); len(in) != map[bool]int{true: 2, false: 1}[inCore] {
			t.Errorf("%s of %s is in %q", test.Name, test.Package, in)
		}
	}
	if _, err := InTier("none", all, shards); err == nil {
		t.Error("a tier without tests is no error")
	}
}
