package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// core is the tier of make test.
const core = "core"

// InTier are the tests of real systems that a tier must run; there is a race-<package> of each package's core, and one for the others.
func InTier(tier string, all []Test, shards []Shard) (tests []Test, err error) {
	of := func(name string) func(Test) bool {
		return func(test Test) bool {
			return slices.ContainsFunc(shards, func(s Shard) bool { return (name == "" || name == s.Name) && s.Has(test) })
		}
	}
	resource, race := strings.CutPrefix(tier, "race-")
	for _, test := range all {
		if !test.Real || strings.HasPrefix(test.Name, "Benchmark") {
			continue
		}
		in := of(tier)(test)
		switch below, name := path.Split(test.Package); {
		case tier == core:
			in = !of("")(test)
		case race && resource == "others":
			in = !of("")(test) && below != "resource/"
		case race:
			in = !of("")(test) && below == "resource/" && name == resource
		}
		if in {
			tests = append(tests, test)
		}
	}
	if len(tests) == 0 {
		return nil, fmt.Errorf("no test is in the tier %q", tier)
	}
	return tests, nil
}

// event is a line of go test -json.
type event struct{ Action, Package, Test string }

// Verdict reads the events of a run and of the repetitions of its failed tests. It returns the tests that failed before they passed, and an
// error unless each wanted test has passed in the end, and each package failed by its tests alone, which all ended.
func Verdict(events io.Reader, wanted []Test) (flakes []string, err error) {
	var errs []error
	last, failed := map[string]string{}, map[string]bool{}
	// Of a package that runs: its tests that have begun, and whether one has failed.
	begun, ofPackage := map[string]bool{}, map[string]bool{}
	for decoder := json.NewDecoder(events); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the events of the tests: %w", err)
		}
		_, dir, _ := strings.Cut(e.Package, "/internal/")
		name := dir + "." + e.Test
		ends := e.Action == "pass" || e.Action == "fail" || e.Action == "skip"
		switch {
		case e.Test == "" && e.Action == "start":
			begun, ofPackage = without(begun, dir), without(ofPackage, dir)
		case e.Test == "" && ends:
			for test := range begun {
				if strings.HasPrefix(test, dir+".") {
					errs = append(errs, fmt.Errorf("the tests of %s ended in the middle of %s", dir, test))
				}
			}
			if e.Action == "fail" && !ofPackage[dir+"."] {
				errs = append(errs, fmt.Errorf("%s failed, and none of its tests", dir))
			}
		case strings.Contains(e.Test, "/"):
		case e.Action == "run":
			begun[name] = true
		case ends:
			if e.Action == "fail" {
				failed[name], ofPackage[dir+"."] = true, true
			}
			delete(begun, name)
			last[name] = e.Action
		}
	}
	for _, test := range wanted {
		if name := test.Package + "." + test.Name; last[name] != "pass" {
			errs = append(errs, fmt.Errorf("%s has not passed", name))
		}
	}
	return slices.Sorted(maps.Keys(failed)), errors.Join(errs...)
}

// without removes the entries of a package.
func without(of map[string]bool, dir string) map[string]bool {
	maps.DeleteFunc(of, func(name string, _ bool) bool { return strings.HasPrefix(name, dir+".") })
	return of
}
