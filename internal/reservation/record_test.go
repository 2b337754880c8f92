package reservation

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// annotatedClaim is a claim with annotations.
func annotatedClaim(annotations map[string]string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: golden.Namespace, Name: golden.Name, UID: "uid-1", ResourceVersion: "7",
		Annotations: annotations, Finalizers: []string{protection, Finalizer},
	}}
}

func TestLook_SortsAndDropsCopies(t *testing.T) {
	a, b := binding("a", "n1", volume.ReadShared).record(), binding("b", "n2", volume.WriteShared).record()
	b.Nonces = []string{"n2", "n1"}
	there := with(b, a, ofUID("uid-0", binding("c", "n3", volume.ReadShared).record()))
	there["virtclaim.io/bindings"], there["example.com/binding.d"] = "?", "?"
	if diff := cmp.Diff([]Record{a, b}, Look(annotatedClaim(there))); diff != "" {
		t.Error(diff)
	}
	if claim := annotatedClaim(there); Held(claim, "b", "n1") != volume.WriteShared || Held(claim, "b", "n3")+Held(claim, "c", "n3")+Held(claim, "d", "n1") != "" {
		t.Errorf("it has the wrong ones of %v", there)
	}
}

func TestLook_UnreadableRecordCounts(t *testing.T) {
	whole := binding("a", "n1", volume.ReadShared).record().value()
	for _, value := range []string{
		"", "?", "null", "[]", "{}", whole + "x", whole[:20],
		strings.Replace(whole, "read-shared", "exclusive", 1),
		strings.Replace(whole, `"n1"`, "", 1),
		strings.Replace(whole, `"n1"`, `""`, 1),
		strings.Replace(whole, `["n1"]`, `"n1"`, 1),
		strings.Replace(whole, "uid-1", "", 1),
	} {
		records := Look(annotatedClaim(map[string]string{keyPrefix + "a": value}))
		if len(records) != 1 || records[0].ID != "a" || records[0].Unreadable == nil {
			t.Errorf("%q is %+v", value, records)
		}
		if text := records[0].String(); !strings.Contains(text, "unknown holder (id a, whose record can't be read") {
			t.Errorf("%q is called %s", value, text)
		}
	}
}

func FuzzLook(f *testing.F) {
	f.Add("a", binding("a", "n1", volume.ReadShared).record().value())
	f.Add("a", ofUID("uid-0", binding("a", "n1", volume.WriteExclusive).record()).value())
	f.Add("", `{"nonces":[""],"mode":"read-shared","claimUID":"uid-1"}`)
	f.Add("'; rm", `{"owner":1}`)
	f.Fuzz(func(t *testing.T, id, value string) {
		claim := annotatedClaim(map[string]string{keyPrefix + id: value})
		for _, r := range Look(claim) {
			_, _ = r.String(), releaseCommand(claim, r)
		}
		if len(Look(claim)) == 0 {
			if r := parse(id, value); r.ClaimUID == "" || r.ClaimUID == "uid-1" {
				t.Errorf("%q is free: %+v", value, r)
			}
			return
		}
		// A record that holds the claim in any way conflicts with a write-exclusive binding.
		other := binding(id+"-other", "n1", volume.WriteExclusive)
		if against := other.conflicting(Look(claim), Content{}); len(against) != 1 {
			t.Errorf("%q is in nobody's way", value)
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add("prod", "db", "n1")
	f.Add(`a"b'`, "ünï; <x>", "\x00")
	f.Fuzz(func(t *testing.T, owner, name, nonce string) {
		if nonce == "" || !utf8.ValidString(owner) || !utf8.ValidString(name) || !utf8.ValidString(nonce) {
			return // Terraform's strings are UTF-8, and so is JSON
		}
		want := Record{ID: "a", Owner: owner, Name: name, Nonces: []string{nonce}, Mode: volume.ReadShared, ClaimUID: "uid-1"}
		if diff := cmp.Diff(want, parse("a", want.value())); diff != "" {
			t.Error(diff)
		}
	})
}
