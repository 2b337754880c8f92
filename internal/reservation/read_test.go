package reservation

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func TestRead(t *testing.T) {
	held := newClaims(protection)
	b := binding("db", "n1", volume.ReadShared)
	if err := Reserve(t.Context(), held, golden, b, refusing(t)); err != nil {
		t.Fatal(err)
	}
	vanished := newClaims()
	vanished.claim = nil
	for name, c := range map[string]struct {
		claims *fakeClaims
		uid    string
		// want is the number of records; -1 means nil.
		want int
	}{
		"a claim that is held":           {held, "uid-1", 1},
		"a claim that nobody holds":      {newClaims(), "uid-1", 0},
		"a claim that is another by now": {held, "uid-0", -1},
		"a claim that is gone":           {vanished, "uid-1", -1},
	} {
		t.Run(name, func(t *testing.T) {
			records, err := Read(t.Context(), c.claims, golden, c.uid)
			if err != nil || (records == nil) != (c.want < 0) || len(records) != max(c.want, 0) {
				t.Errorf("got %#v, %v", records, err)
			}
		})
	}
}

func TestRead_SurvivesOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims, began := newClaims(), time.Now()
		claims.read = func(int) error {
			if time.Since(began) < 10*time.Minute {
				return errors.New("connection refused")
			}
			return nil
		}
		if records, err := Read(t.Context(), claims, golden, "uid-1"); err != nil || records == nil {
			t.Errorf("got %#v, %v", records, err)
		}
	})
}
