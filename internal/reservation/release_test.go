package reservation

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func TestRelease(t *testing.T) {
	shared := func(id string, nonces ...string) Record {
		r := binding(id, "", volume.ReadShared).record()
		r.Nonces = nonces
		return r
	}
	reserved, bare := []string{protection, Finalizer}, []string{protection}
	tests := []struct {
		name       string
		there      map[string]string
		finalizers []string
		uid        string
		// ends calls End instead of Release.
		ends bool
		want map[string][]string
		// left are the remaining finalizers, writes the number of patches.
		left   []string
		writes int
	}{
		{
			name: "the last nonce of the last record", there: with(shared("db", "n1")), finalizers: reserved,
			want: map[string][]string{}, left: bare, writes: 1,
		},
		{
			name: "the last record beside a copy's", there: with(shared("db", "n1"), ofUID("uid-0", shared("a", "x"))), finalizers: reserved,
			want: map[string][]string{}, left: bare, writes: 1,
		},
		{
			name: "a record beside another", there: with(shared("db", "n1"), shared("a", "x")), finalizers: reserved,
			want: map[string][]string{"a": {"x"}}, left: reserved, writes: 1,
		},
		{
			name: "a record beside one that can't be read", there: map[string]string{keyPrefix + "db": shared("db", "n1").value(), keyPrefix + "a": "?"},
			finalizers: reserved, want: map[string][]string{"a": nil}, left: reserved, writes: 1,
		},
		{
			name: "one of two nonces", there: with(shared("db", "n0", "n1")), finalizers: reserved,
			want: map[string][]string{"db": {"n0"}}, left: reserved, writes: 1,
		},
		{
			name: "one that ends, of those before and after it", there: with(shared("db", "n0", "n1", "n2")), finalizers: reserved, ends: true,
			want: map[string][]string{"db": {"n2"}}, left: reserved, writes: 1,
		},
		{
			name: "one that ends, and what was interrupted before it", there: with(shared("db", "n0", "n1")), finalizers: reserved, ends: true,
			want: map[string][]string{}, left: bare, writes: 1,
		},
		{
			name: "a record that has been taken over", there: with(shared("db", "n2")), finalizers: reserved,
			want: map[string][]string{"db": {"n2"}}, left: reserved,
		},
		{
			name: "a record that has been taken over, and whose finalizer is gone", there: with(shared("db", "n2")), finalizers: bare,
			want: map[string][]string{"db": {"n2"}}, left: bare,
		},
		{name: "no record", finalizers: bare, want: map[string][]string{}, left: bare},
		{name: "a finalizer whose record was dropped", finalizers: reserved, want: map[string][]string{}, left: bare, writes: 1},
		{name: "the only finalizer", there: with(shared("db", "n1")), finalizers: []string{Finalizer}, want: map[string][]string{}, writes: 1},
		{
			name: "a claim of another UID", there: with(shared("db", "n1")), finalizers: reserved, uid: "uid-0",
			want: map[string][]string{"db": {"n1"}}, left: reserved,
		},
		{
			name: "another id", there: with(shared("a", "n1")), finalizers: reserved,
			want: map[string][]string{"a": {"n1"}}, left: reserved,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			claims := newClaims(tt.finalizers...)
			for key, value := range tt.there {
				claims.claim.Annotations[key] = value
			}
			uid := "uid-1"
			if tt.uid != "" {
				uid = tt.uid
			}
			how := Release
			if tt.ends {
				how = End
			}
			if err := how(t.Context(), claims, golden, "db", "n1", uid); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, claims.holders()); diff != "" {
				t.Errorf("the holders: %s", diff)
			}
			if !slices.Equal(claims.claim.Finalizers, tt.left) || len(claims.patches) != tt.writes {
				t.Errorf("left are %v after %v", claims.claim.Finalizers, claims.patches)
			}
		})
	}
}

func TestRelease_DeletedClaim(t *testing.T) {
	claims := newClaims()
	claims.claim = nil
	if err := Release(t.Context(), claims, golden, "db", "n1", "uid-1"); err != nil {
		t.Error(err)
	}
	// The claim is deleted between the read and the write.
	claims = newClaims(Finalizer)
	claims.claim.Annotations = with(binding("db", "n1", volume.ReadShared).record())
	claims.write = func(int) error {
		claims.mu.Lock()
		defer claims.mu.Unlock()
		claims.claim = nil
		return nil
	}
	if err := Release(t.Context(), claims, golden, "db", "n1", "uid-1"); err != nil {
		t.Error(err)
	}
}

func TestRelease_ClaimBeingDeleted(t *testing.T) {
	claims := newClaims()
	for id, nonce := range map[string]string{"db": "n1", "web": "n2"} {
		if err := Reserve(t.Context(), claims, golden, binding(id, nonce, volume.ReadShared), refusing(t)); err != nil {
			t.Fatal(err)
		}
	}
	claims.claim.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	if err := Release(t.Context(), claims, golden, "db", "n1", "uid-1"); err != nil || claims.claim == nil {
		t.Errorf("%v, and the claim is %v", err, claims.claim)
	}
	if err := Release(t.Context(), claims, golden, "web", "n2", "uid-1"); err != nil || claims.claim != nil {
		t.Errorf("%v, and the claim is %v", err, claims.claim)
	}
}

func TestRelease_LeavesUnreadableRecords(t *testing.T) {
	claims := newClaims(Finalizer)
	claims.claim.Annotations = map[string]string{keyPrefix + "db": "{"}
	err := Release(t.Context(), claims, golden, "db", "n1", "uid-1")
	var held *HeldError
	if !errors.As(err, &held) || !strings.Contains(err.Error(), "can't be released") || !strings.Contains(err.Error(), held.Holders[0].Release) {
		t.Errorf("got %v", err)
	}
	if len(claims.patches) > 0 {
		t.Errorf("it wrote %v", claims.patches)
	}
}
