package reservation

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func free(context.Context) (HolderState, error) { return HolderState{Use: Free}, nil }

// A claim that one binding has filled is read by another one of the same owner, as long as its content is complete.
func TestReserve_ReadsWhatWasFilled(t *testing.T) {
	fill, read := binding("fill", "nonce-of-fill", volume.WriteExclusive), binding("read", "n2", volume.ReadShared)
	by := volume.BindingRef{ID: "fill", Instance: volume.InstanceOf(fill.Nonce)}
	foreign, writing := read, read
	foreign.Owner, writing.Mode = "test", volume.WriteShared
	for name, c := range map[string]struct {
		content *Content
		reserve Binding
		ok      bool
	}{
		"filled":                  {&Content{Generation: "g"}, read, true},
		"not filled":              {nil, read, false},
		"being filled":            {&Content{Generation: "g", Filling: true}, read, false},
		"filled, another owner":   {&Content{Generation: "g"}, foreign, false},
		"filled, without owners":  {&Content{Generation: "g"}, unowned(read), false},
		"filled, but for writers": {&Content{Generation: "g"}, writing, false},
	} {
		t.Run(name, func(t *testing.T) {
			claims := newClaims()
			if err := Reserve(t.Context(), claims, golden, fill, free); err != nil {
				t.Fatal(err)
			}
			if c.content != nil {
				if err := RecordContent(t.Context(), claims, golden, by, *c.content); err != nil {
					t.Fatal(err)
				}
			}
			err := Reserve(t.Context(), claims, golden, c.reserve, free)
			var held *HeldError
			if c.ok != (err == nil) || !c.ok && !errors.As(err, &held) {
				t.Errorf("reserved with %v", err)
			}
			if err := Reserve(t.Context(), claims, golden, fill, free); err != nil { // an update of it
				t.Errorf("the binding that fills is refused: %v", err)
			}
		})
	}
}

func TestRecordContent(t *testing.T) {
	claims, fill := newClaims(), binding("fill", "nonce-of-fill", volume.WriteExclusive)
	by := volume.BindingRef{ID: "fill", Instance: volume.InstanceOf(fill.Nonce)}
	is := Content{Generation: "g", Digest: "sha256:ab"}
	if err := RecordContent(t.Context(), claims, golden, by, is); err == nil {
		t.Error("the content of a claim that is not reserved was recorded")
	}
	if err := Reserve(t.Context(), claims, golden, fill, free); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := RecordContent(t.Context(), claims, golden, by, is); err != nil {
			t.Fatal(err)
		}
	}
	want := Content{Binding: "fill", Generation: "g", Digest: "sha256:ab", ClaimUID: "uid-1"}
	if got, err := ContentOf(claims.claim); got != want || err != nil || claims.writes != 2 {
		t.Errorf("recorded is %+v, with %d writes", got, claims.writes)
	}
	err := ForgetContent(t.Context(), claims, golden, volume.BindingRef{ID: "other"})
	if got, _ := ContentOf(claims.claim); err != nil || got != want {
		t.Errorf("another binding has removed the record: %v", err)
	}
	err = ForgetContent(t.Context(), claims, golden, by)
	if got, _ := ContentOf(claims.claim); err != nil || got != (Content{}) {
		t.Errorf("the record is left: %v", err)
	}
	claims.claim = nil
	if err := ForgetContent(t.Context(), claims, golden, by); err != nil {
		t.Errorf("the claim is gone: %v", err)
	}
}

// The annotation of a claim that was created again from a backup is that of the former one.
func TestContentOf_OtherClaim(t *testing.T) {
	for _, text := range []string{"", "{", `{"binding":"fill","generation":"g","claimUID":"uid-0"}`} {
		if got, err := ContentOf(annotatedClaim(map[string]string{contentKey: text})); got != (Content{}) || err != nil {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
}

// What a newer provider has recorded of a content is not "no content": nothing replaces or removes it.
func TestContentOf_NewerProvider(t *testing.T) {
	fill := binding("fill", "nonce-of-fill", volume.WriteExclusive)
	by := volume.BindingRef{ID: "fill", Instance: volume.InstanceOf(fill.Nonce)}
	for _, text := range []string{
		`{"version":2,"binding":"fill","generation":"g","claimUID":"uid-1"}`, `{"version":2,"binding":["fill"]}`, `{"version":2}`,
	} {
		claims := newClaims()
		if err := Reserve(t.Context(), claims, golden, fill, free); err != nil {
			t.Fatal(err)
		}
		claims.claim.Annotations[contentKey] = text
		writes := claims.writes
		got, err := ContentOf(claims.claim)
		for name, err := range map[string]error{
			"read":   err,
			"record": RecordContent(t.Context(), claims, golden, by, Content{Generation: "h"}),
			"forget": ForgetContent(t.Context(), claims, golden, by),
		} {
			if !errors.Is(err, newer.Err) || !strings.Contains(err.Error(), golden.String()) {
				t.Errorf("%s %s: %v", name, text, err)
			}
		}
		if got != (Content{}) || claims.writes != writes || claims.claim.Annotations[contentKey] != text {
			t.Errorf("%s is %+v, and was changed to %s", text, got, claims.claim.Annotations[contentKey])
		}
		var held *HeldError
		if err := Reserve(t.Context(), claims, golden, binding("read", "n2", volume.ReadShared), free); !errors.As(err, &held) {
			t.Errorf("%s lets another binding read the claim: %v", text, err)
		}
	}
}
