package suite

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// known are all tests and shards.
func known(t *testing.T) (tests []Test, shards []Shard) {
	t.Helper()
	tests, err := Tests()
	if err != nil {
		t.Fatal(err)
	}
	shards, err = Shards()
	if err != nil || len(tests) == 0 || len(shards) == 0 {
		t.Fatalf("%d tests and %d shards: %v", len(tests), len(shards), err)
	}
	return tests, shards
}

// tiers are the names of all tiers of tests on real systems.
func tiers(shards []Shard) []string {
	names := []string{core, "race-disk", "race-virtualmachine", "race-volumebinding", "race-volumecontent", "race-others"}
	for _, shard := range shards {
		names = append(names, shard.Name)
	}
	return names
}

// Each test is in one tier: a unit test in make test-unit, one of real systems in make test or in one shard.
func TestTests_EachInOneTier(t *testing.T) {
	all, shards := known(t)
	for _, test := range all {
		if strings.HasPrefix(test.Name, "Benchmark") {
			continue
		}
		// The name selects the tests that run on real systems, and the build constraint compiles them.
		if strings.HasPrefix(test.Name, "TestAcc") != test.Real {
			t.Errorf("%s in %s: files of TestAcc… begin with //go:build acc, and others don't", test.Name, test.Package)
		}
		var in, others []string
		for _, shard := range shards {
			if shard.Has(test) {
				in = append(in, shard.Name)
			} else if shard.Package != "lab/..." && (Shard{Package: test.Package, Tests: shard.Tests}).Has(test) {
				others = append(others, shard.Name)
			}
		}
		if len(in) > 1 || len(in) > 0 && !test.Real {
			t.Errorf("%s in %s is in the shards %q", test.Name, test.Package, in)
		}
		if len(in) == 0 && len(others) > 0 {
			t.Errorf("make test skips %s in %s, and the shards %q are of other packages", test.Name, test.Package, others)
		}
	}
}

// A test that was renamed would run in make test from now on.
func TestShards_EachPatternHasATest(t *testing.T) {
	all, shards := known(t)
	for _, shard := range shards {
		for _, tests := range shard.Tests {
			one := Shard{Package: shard.Package, Tests: []*regexp.Regexp{tests}}
			if !slices.ContainsFunc(all, one.Has) {
				t.Errorf("no test of shard %s matches %s", shard.Name, tests)
			}
		}
	}
}

// The workflow of each night runs all shards, with Terraform and with OpenTofu.
func TestShards_NightlyRunsAll(t *testing.T) {
	workflow, err := os.ReadFile(filepath.Join("..", "..", "..", ".github", "workflows", "nightly.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(workflow), "cli: [terraform, tofu]\n") {
		t.Error("nightly.yml has not both terraform and tofu")
	}
	_, shards := known(t)
	for _, name := range append(tiers(shards), "fuzz") {
		if !strings.Contains(string(workflow), "- "+name+"\n") {
			t.Errorf("nightly.yml has no shard %s", name)
		}
	}
}
