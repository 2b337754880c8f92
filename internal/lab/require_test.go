package lab

import (
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

func TestRequire_NamesMissingPrograms(t *testing.T) {
	got := missingPrograms([]string{"sh", "no-such-program", "ls", "nor-this"}, "/nowhere:/bin:/usr/bin")
	if want := []string{"no-such-program", "nor-this"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRequire_LongSocketPath(t *testing.T) {
	dir := "/" + strings.Repeat("x", 90)
	err := newHost(dir, "host-a", artefact.Image{}).writeConfiguration()
	if err == nil || !strings.Contains(err.Error(), "move the checkout to a shorter path") {
		t.Errorf("the error is %v", err)
	}
}

func TestDiff_AddedAndRemoved(t *testing.T) {
	before, after := Snapshot{"a", "b"}, Snapshot{"b", "c"}
	want := []string{"c was not there before", "a is gone"}
	if got := before.Diff(after); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if same := before.Diff(before); len(same) > 0 {
		t.Errorf("nothing changed, but %q", same)
	}
}
