package reservation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
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

// What a newer provider has written holds the claim, whatever else it says, and stays as it is.
func TestReserve_LeavesRecordsOfNewerProvider(t *testing.T) {
	whole := binding("a", "n1", volume.ReadShared).record().value()
	for _, value := range []string{
		strings.Replace(whole, "{", `{"version":2,`, 1),
		strings.Replace(whole, `["n1"]`, `{"n1":true},"version":2`, 1),
		strings.Replace(whole, "uid-1", `uid-0","version":"1.1`, 1), // where this version has the UID of the claim, it may have anything
	} {
		for _, id := range []string{"a", "b"} {
			claims := newClaims(Finalizer)
			claims.claim.Annotations = map[string]string{keyPrefix + "a": value}
			for name, err := range map[string]error{
				"reserve": Reserve(t.Context(), claims, golden, binding(id, "n1", volume.ReadShared), free),
				"plan":    binding(id, "n1", volume.ReadShared).CheckForeign(claims.claim, ""),
				"release": Release(t.Context(), claims, golden, "a", "n1", "uid-1"),
				"end":     End(t.Context(), claims, golden, "a", "n1", "uid-1"),
				"look":    CheckReadable(claims.claim, "a"),
			} {
				if strings.Contains(fmt.Sprint(err), "kubectl") {
					t.Errorf("%s of %s beside %s advises to remove it: %v", name, id, value, err)
				}
				if !errors.Is(err, newer.Err) || !strings.Contains(err.Error(), newer.Err.Error()) || !strings.Contains(err.Error(), golden.String()) {
					t.Errorf("%s of %s beside %s: %v", name, id, value, err)
				}
			}
			if claims.writes > 0 || claims.claim.Annotations[keyPrefix+"a"] != value {
				t.Errorf("%s was changed to %s", value, claims.claim.Annotations[keyPrefix+"a"])
			}
			if err := Release(t.Context(), claims, golden, "b", "n1", "uid-1"); err != nil || !slices.Contains(claims.claim.Finalizers, Finalizer) {
				t.Errorf("the claim is left without its finalizer: %v", err)
			}
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
		if against := other.conflicting(claim); len(against) != 1 {
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
