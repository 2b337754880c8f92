package reservation

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func TestReleaseCommand(t *testing.T) {
	a, b := binding("a", "x", volume.ReadShared).record(), binding("b", "y", volume.ReadShared).record()
	stale := ofUID("uid-0", binding("c", "z", volume.ReadShared).record())
	tests := []struct {
		name  string
		there []Record
		gone  []Record
		want  string
	}{
		{
			"the only record",
			[]Record{a, stale},
			[]Record{a},
			`{"metadata":{"resourceVersion":"7","annotations":{"virtclaim.io/binding.a":null},"finalizers":["kubernetes.io/pvc-protection"]}}`,
		},
		{
			"one of two",
			[]Record{a, b},
			[]Record{a},
			`{"metadata":{"uid":"uid-1","annotations":{"virtclaim.io/binding.a":null}}}`,
		},
		{
			"both",
			[]Record{a, b},
			[]Record{a, b},
			`{"metadata":{"resourceVersion":"7","annotations":{"virtclaim.io/binding.a":null,"virtclaim.io/binding.b":null},` +
				`"finalizers":["kubernetes.io/pvc-protection"]}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := "kubectl patch pvc golden -n vms --type=merge -p '" + tt.want + "'"
			if diff := cmp.Diff(want, releaseCommand(annotatedClaim(with(tt.there...)), tt.gone...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A shell returns the quoted words unchanged.
func TestQuote(t *testing.T) {
	for _, word := range []string{"golden", "", "it's", `'"$HOME" \`, "a b\n`c`", "*", "~", "é"} {
		out, err := exec.CommandContext(context.Background(), "sh", "-c", "printf %s "+quote(word)+"x").Output()
		if err != nil || strings.TrimSuffix(string(out), "x") != word {
			t.Errorf("%q became %q: %v", word, out, err)
		}
	}
}
