package reservation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

const protection = "kubernetes.io/pvc-protection"

// binding returns a binding of the owner prod on the claim with UID uid-1; ids are names here.
func binding(id, nonce string, mode volume.AccessMode) Binding {
	return Binding{ID: id, Owner: "prod", Name: id, Nonce: nonce, Mode: mode, ClaimUID: "uid-1"}
}

func unowned(b Binding) Binding {
	b.Owner = ""
	return b
}

// record returns the record of a binding without conflicts.
func (b Binding) record() Record {
	return Record{ID: b.ID, Owner: b.Owner, Name: b.Name, Nonces: []string{b.Nonce}, Mode: b.Mode, ClaimUID: b.ClaimUID}
}

func ofUID(uid string, r Record) Record {
	r.ClaimUID = uid
	return r
}

// with returns the annotations of records.
func with(records ...Record) map[string]string {
	found := map[string]string{}
	for _, r := range records {
		found[keyPrefix+r.ID] = r.value()
	}
	return found
}

func state(use Use, users ...string) ResolveConflict {
	return func(context.Context) (HolderState, error) { return HolderState{Use: use, Users: users}, nil }
}

func TestReserve(t *testing.T) {
	const exclusive, writers, readers = volume.WriteExclusive, volume.WriteShared, volume.ReadShared
	db := binding("db", "n1", exclusive)
	tests := []struct {
		name    string
		there   map[string]string
		reserve Binding
		resolve ResolveConflict // nil must not be called
		// want are the nonces of each record; held, if not empty, are the ids in the error.
		want map[string][]string
		held []string
	}{
		{name: "a free claim", reserve: db, want: map[string][]string{"db": {"n1"}}},

		// Each mode against each mode of another id.
		{name: "exclusive beside exclusive", there: with(binding("a", "x", exclusive).record()), reserve: db, held: []string{"a"}},
		{name: "exclusive beside writers", there: with(binding("a", "x", writers).record()), reserve: db, held: []string{"a"}},
		{name: "exclusive beside readers", there: with(binding("a", "x", readers).record()), reserve: db, held: []string{"a"}},
		{name: "reader beside exclusive", there: with(binding("a", "x", exclusive).record()), reserve: binding("db", "n1", readers), held: []string{"a"}},
		{name: "reader beside writers", there: with(binding("a", "x", writers).record()), reserve: binding("db", "n1", readers), held: []string{"a"}},
		{
			name: "reader beside readers", there: with(binding("a", "x", readers).record()), reserve: binding("db", "n1", readers),
			want: map[string][]string{"a": {"x"}, "db": {"n1"}},
		},
		{name: "writer beside exclusive", there: with(binding("a", "x", exclusive).record()), reserve: binding("db", "n1", writers), held: []string{"a"}},
		{name: "writer beside readers", there: with(binding("a", "x", readers).record()), reserve: binding("db", "n1", writers), held: []string{"a"}},
		{
			name: "writer beside writers", there: with(binding("a", "x", writers).record()), reserve: binding("db", "n1", writers),
			want: map[string][]string{"a": {"x"}, "db": {"n1"}},
		},
		{
			name:    "all holders are named",
			there:   with(binding("a", "x", readers).record(), binding("b", "y", readers).record()),
			reserve: db, held: []string{"a", "b"},
		},

		// Records of another UID, and unreadable ones.
		{
			name:  "a backup's record of another id is ignored and left",
			there: with(ofUID("uid-0", binding("a", "x", exclusive).record())), reserve: db, want: map[string][]string{"db": {"n1"}},
		},
		{
			name:  "a backup's record of the same id is written over, whatever its nonce",
			there: with(ofUID("uid-0", binding("db", "x", exclusive).record())), reserve: db, want: map[string][]string{"db": {"n1"}},
		},
		{name: "garbage of another id", there: map[string]string{keyPrefix + "a": "{"}, reserve: binding("db", "n1", readers), held: []string{"a"}},
		{name: "garbage of the same id", there: map[string]string{keyPrefix + "db": "{}"}, reserve: db, held: []string{"db"}},

		// Records of the same id.
		{name: "once more", there: with(db.record()), reserve: db, want: map[string][]string{"db": {"n1"}}},
		{
			name: "stronger alone", there: with(binding("db", "n1", readers).record()), reserve: db,
			want: map[string][]string{"db": {"n1"}},
		},
		{
			name:    "stronger beside another",
			there:   with(binding("a", "x", readers).record(), binding("db", "n1", readers).record()),
			reserve: db, held: []string{"a"},
		},
		{
			name: "another nonce that nobody stands behind", there: with(binding("db", "n0", exclusive).record()), reserve: db,
			resolve: state(Free), want: map[string][]string{"db": {"n0", "n1"}},
		},
		{
			name: "another nonce with machines of ours", there: with(binding("db", "n0", exclusive).record()), reserve: db,
			resolve: state(Ours), want: map[string][]string{"db": {"n0", "n1"}},
		},
		{
			name:  "another nonce with machines of ours under another mode",
			there: with(binding("db", "n0", readers).record()), reserve: db, resolve: state(Ours), held: []string{"db"},
		},
		{
			name:    "one that an interrupted apply put behind it",
			there:   with(Record{ID: "db", Owner: "prod", Name: "db", Nonces: []string{"n0", "n1", "n2"}, Mode: exclusive, ClaimUID: "uid-1"}),
			reserve: db, resolve: state(Ours), want: map[string][]string{"db": {"n0", "n1"}},
		},
		{
			name: "another nonce without an owner", there: with(unowned(binding("db", "n0", exclusive)).record()), reserve: unowned(db),
			held: []string{"db"},
		},
		{
			name:  "another nonce of another owner under the same id",
			there: with(Record{ID: "db", Owner: "test", Name: "db", Nonces: []string{"n0"}, Mode: readers, ClaimUID: "uid-1"}), reserve: db,
			held: []string{"db"},
		},
		{
			name:  "nobody is contested for a claim that another id holds",
			there: with(binding("a", "x", readers).record(), binding("db", "n0", readers).record()), reserve: db, held: []string{"a"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			claims := newClaims(protection)
			for key, value := range tt.there {
				claims.claim.Annotations[key] = value
			}
			before := claims.claim.DeepCopy()
			if tt.resolve == nil {
				tt.resolve = refusing(t)
			}
			err := Reserve(t.Context(), claims, golden, tt.reserve, tt.resolve)
			if len(tt.held) > 0 {
				checkHeld(t, err, tt.reserve, tt.held)
				if diff := cmp.Diff(before, claims.claim); diff != "" {
					t.Errorf("the claim was changed: %s", diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, claims.holders()); diff != "" {
				t.Errorf("the holders: %s", diff)
			}
			if r, _ := find(Look(claims.claim), tt.reserve.ID); r.Mode != tt.reserve.Mode {
				t.Errorf("the mode is %s", r.Mode)
			}
			if Held(claims.claim, tt.reserve.ID, tt.reserve.Nonce) != tt.reserve.Mode || !slices.Equal(claims.claim.Finalizers, []string{protection, Finalizer}) {
				t.Errorf("it is not held: %v", claims.claim.ObjectMeta)
			}
			if claims.claim.Annotations["pv.kubernetes.io/bind-completed"] != "yes" {
				t.Error("another's annotation is gone")
			}
		})
	}
}

func checkHeld(t *testing.T, err error, b Binding, ids []string) {
	t.Helper()
	var held *HeldError
	if !errors.As(err, &held) {
		t.Fatalf("got %v", err)
	}
	var found []string
	for _, h := range held.Holders {
		found = append(found, h.ID)
		for _, part := range []string{"vms/golden", h.ID, string(b.Mode), h.Release, "make sure that no machine uses"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is missing in: %s", part, err)
			}
		}
	}
	if held.Claim != golden || held.Mode != b.Mode || !slices.Equal(found, ids) {
		t.Errorf("got %+v", held)
	}
}

func TestReserve_TwiceWritesOnce(t *testing.T) {
	claims := newClaims()
	for range 2 {
		if err := Reserve(t.Context(), claims, golden, binding("db", "n1", volume.WriteExclusive), refusing(t)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`{"metadata":{"resourceVersion":"1","annotations":{"virtclaim.io/binding.db":` +
		`"{\"owner\":\"prod\",\"name\":\"db\",\"nonces\":[\"n1\"],\"mode\":\"write-exclusive\",\"claimUID\":\"uid-1\"}"},` +
		`"finalizers":["virtclaim.io/reservation"]}}`}
	if diff := cmp.Diff(want, claims.patches); diff != "" {
		t.Error(diff)
	}
}

func TestReserve_RestoresFinalizer(t *testing.T) {
	claims := newClaims()
	db := binding("db", "n1", volume.WriteExclusive)
	if err := Reserve(t.Context(), claims, golden, db, refusing(t)); err != nil {
		t.Fatal(err)
	}
	claims.change(func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil })
	if Held(claims.claim, "db", "n1") != "" {
		t.Error("a record without a finalizer keeps nothing")
	}
	if err := Reserve(t.Context(), claims, golden, db, refusing(t)); err != nil || Held(claims.claim, "db", "n1") == "" {
		t.Errorf("%v, and the claim is %v", err, claims.claim.ObjectMeta)
	}
}

func TestReserve_RefusesOtherClaim(t *testing.T) {
	claims := newClaims()
	b := binding("db", "n1", volume.WriteExclusive)
	b.ClaimUID = "uid-0"
	err := Reserve(t.Context(), claims, golden, b, refusing(t))
	var other *OtherClaimError
	if !errors.As(err, &other) || *other != (OtherClaimError{golden, "uid-0", "uid-1"}) || len(claims.patches) > 0 {
		t.Errorf("got %v, and wrote %v", err, claims.patches)
	}
}

func TestReserve_RefusesClaimBeingDeleted(t *testing.T) {
	claims := newClaims(protection)
	since := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	claims.claim.DeletionTimestamp = &metav1.Time{Time: since}
	err := Reserve(t.Context(), claims, golden, binding("db", "n1", volume.WriteExclusive), refusing(t))
	var deleting *DeletingError
	if !errors.As(err, &deleting) || deleting.Claim != golden || !deleting.Since.Equal(since) || len(claims.patches) > 0 {
		t.Fatalf("got %v, and wrote %v", err, claims.patches)
	}
	if !strings.Contains(err.Error(), "since 2025-01-01T00:00:00Z") || !strings.Contains(err.Error(), protection) {
		t.Errorf("got %v", err)
	}
}

func TestReserve_RespectsForeignMachines(t *testing.T) {
	claims := newClaims()
	claims.claim.Annotations = with(binding("db", "n0", volume.WriteExclusive).record())
	db := binding("db", "n1", volume.WriteExclusive)
	err := Reserve(t.Context(), claims, golden, db, state(Foreign, "domain web on host-a"))
	var foreign *ForeignError
	if !errors.As(err, &foreign) || foreign.Holder.ID != "db" || len(claims.patches) > 0 {
		t.Fatalf("got %v, and wrote %v", err, claims.patches)
	}
	for _, part := range []string{"vms/golden", `"db"`, `"prod"`, "domain web on host-a", foreign.Holder.Release} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %s", part, err)
		}
	}
	silent := errors.New("host-a does not answer")
	err = Reserve(t.Context(), claims, golden, db, func(context.Context) (HolderState, error) { return HolderState{Use: Free}, silent })
	if !errors.Is(err, silent) || !strings.Contains(err.Error(), "vms/golden") || len(claims.patches) > 0 {
		t.Errorf("got %v, and wrote %v", err, claims.patches)
	}
}

// A record under the id of a binding in state is in another state if it lacks the binding's nonce, or if machines have the storage from a
// later nonce.
func TestReserve_TwoStates(t *testing.T) {
	mine := binding("db", "n1", volume.WriteExclusive)
	mine.InState = true
	for name, c := range map[string]struct {
		nonces    []string
		instances map[string][]string
		refused   bool
	}{
		"instead of it":                     {[]string{"n2"}, nil, true},
		"after it, with a machine":          {[]string{"n1", "n2"}, map[string][]string{"n2": {"domain web on host-a"}}, true},
		"after it, with this one's machine": {[]string{"n1", "n2"}, map[string][]string{"n1": {"domain web on host-a"}}, false},
		"before it, with a machine":         {[]string{"n0", "n1"}, map[string][]string{"n0": {"domain web on host-a"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			claims := newClaims()
			there := mine.record()
			there.Nonces = c.nonces
			claims.claim.Annotations[keyPrefix+"db"] = there.value()
			err := Reserve(t.Context(), claims, golden, mine, func(context.Context) (HolderState, error) {
				return HolderState{Use: Ours, Instances: c.instances}, nil
			})
			var two *TwoStatesError
			if errors.As(err, &two) != c.refused || c.refused && !slices.Equal(claims.holders()["db"], c.nonces) {
				t.Errorf("got %v; the holders are %v", err, claims.holders())
			}
			for _, users := range c.instances {
				if c.refused && !strings.Contains(err.Error(), users[0]) {
					t.Errorf("%s is not named: %v", users[0], err)
				}
			}
		})
	}
}

// A plan can't know which holders of its own owner the apply releases; those of others it doesn't.
func TestBinding_CheckForeign(t *testing.T) {
	const exclusive, readers = volume.WriteExclusive, volume.ReadShared
	by := func(owner string, mode volume.AccessMode) Record {
		b := binding("other", "n2", mode)
		b.Owner = owner
		return b.record()
	}
	for name, tt := range map[string]struct {
		there  Record
		mode   volume.AccessMode
		former string
		held   bool
	}{
		"another owner":           {by("test", exclusive), exclusive, "prod", true},
		"another owner reads":     {by("test", readers), exclusive, "prod", true},
		"both read":               {by("test", readers), readers, "prod", false},
		"the same owner":          {by("prod", exclusive), exclusive, "prod", false},
		"the former owner":        {by("test", exclusive), exclusive, "test", false},
		"of another claim's copy": {ofUID("uid-0", by("test", exclusive)), exclusive, "prod", false},
		"no owner":                {by("", exclusive), exclusive, "prod", true},
	} {
		claims := newClaims()
		claims.claim.Annotations = with(tt.there)
		b := binding("db", "n1", tt.mode)
		b.ClaimUID = "" // a plan has not resolved it
		err := b.CheckForeign(claims.claim, tt.former)
		var held *HeldError
		if errors.As(err, &held) != tt.held || !tt.held && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
