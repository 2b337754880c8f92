package acctest

import (
	"context"
	"encoding/xml"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

// CutsAndKills are the faults by a lost connection or a killed provider. A kill before a call is the same as a kill after the one before
// it.
var CutsAndKills = []lab.Fault{{}, {After: true}, {After: true, Kill: true}}

// Points are the faults of the calls, each of which occurs that often, in each of the ways and in a fixed order.
func Points(calls map[lab.Call]int, ways []lab.Fault) (all []lab.Fault) {
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		for nth := 1; nth <= calls[call]; nth++ {
			for _, f := range ways {
				f.Call, f.Nth = call, nth
				all = append(all, f)
			}
		}
	}
	return all
}

// Interrupt applies a folder's configuration with a fault, which must happen, and returns output and error.
func Interrupt(t *testing.T, cli CLI, tap *lab.Tap, f lab.Fault) (out string, err error) {
	t.Helper()
	tap.Arm(f)
	out, err = cli.Run("apply", "-auto-approve", "-no-color")
	if !tap.Fired() {
		t.Fatalf("the call was never made: %v\n%s", err, out)
	}
	if err == nil && f.Kill {
		t.Errorf("the provider was killed, but the apply succeeded:\n%s", out)
	}
	return out, err
}

// PutRight applies once more, calls check unless it is nil, and expects an empty plan.
func PutRight(t *testing.T, cli CLI, check func(*testing.T)) {
	t.Helper()
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err != nil {
		t.Fatalf("the next apply failed: %v\n%s", err, out)
	}
	if check != nil {
		check(t)
	}
	if t.Failed() {
		t.Logf("the next apply:\n%s", out)
	}
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Errorf("the plan after that is not empty:\n%s", plan)
	}
}

// shape is the part of a domain that can change while it runs.
type shape struct {
	Title       string `xml:"title"`
	Description string `xml:"description"`
	VCPUs       struct {
		Max     string `xml:",chardata"`
		Current string `xml:"current,attr"`
	} `xml:"vcpu"`
	// Memory is in units of 8 MiB, because a balloon is accurate only to some pages.
	Memory     int              `xml:"currentMemory"`
	Disks      []shapeDisk      `xml:"devices>disk"`
	Interfaces []shapeInterface `xml:"devices>interface"`
}

type shapeDisk struct {
	Target named `xml:"target"`
	Alias  named `xml:"alias"`
	Source struct {
		File string `xml:"file,attr"`
		Dev  string `xml:"dev,attr"`
		Name string `xml:"name,attr"`
	} `xml:"source"`
}

type shapeInterface struct {
	Alias  named `xml:"alias"`
	Source struct {
		Network string `xml:"network,attr"`
	} `xml:"source"`
	MAC struct {
		Address string `xml:"address,attr"`
	} `xml:"mac"`
	Model struct {
		Type string `xml:"type,attr"`
	} `xml:"model"`
	Link struct {
		State string `xml:"state,attr"`
	} `xml:"link"`
}

type named struct {
	Name string `xml:"name,attr"`
	Dev  string `xml:"dev,attr"`
}

// RunsAsStored fails the test when a running domain differs from its persistent definition, in the part that can change live.
func RunsAsStored(t *testing.T, h *lab.Host, domain string) {
	t.Helper()
	shapeOf := func(which ...string) (s shape) {
		text := Must(h.Virsh(context.WithoutCancel(t.Context()), append([]string{"dumpxml", domain}, which...)...))(t)
		if err := xml.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		s.Memory = (s.Memory + 4096) >> 13
		slices.SortFunc(s.Disks, func(a, b shapeDisk) int { return strings.Compare(a.Target.Dev, b.Target.Dev) })
		slices.SortFunc(s.Interfaces, func(a, b shapeInterface) int { return strings.Compare(a.MAC.Address, b.MAC.Address) })
		return s
	}
	if live, stored := shapeOf(), shapeOf("--inactive"); !reflect.DeepEqual(live, stored) {
		t.Errorf("the running machine is\n%+v\nand its stored definition\n%+v", live, stored)
	}
}
