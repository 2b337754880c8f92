//go:build acc

package volumebinding_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// rival is an apply in its own process, with its own owner.
type rival struct {
	acctest.CLI
	owner, mode string
	printed     string
	err         error
}

// contend runs all applies at the same time.
func contend(rivals []*rival) (won, lost []*rival) {
	var group sync.WaitGroup
	for _, r := range rivals {
		group.Go(func() { r.printed, r.err = r.Run("apply", "-auto-approve", "-no-color") })
	}
	group.Wait()
	for _, r := range rivals {
		if r.err == nil {
			won = append(won, r)
		} else {
			lost = append(lost, r)
		}
	}
	return won, lost
}

// rivals creates rivals for one claim.
func rivals(t *testing.T, l *lab.Lab, many int, namespace, mode string) (all []*rival) {
	t.Helper()
	for n := range many {
		r := &rival{owner: fmt.Sprintf("%s-%d", mode, n), mode: mode}
		r.CLI = configured(t, l, r.owner, binding(fromClaim(namespace, "wanted"), fmt.Sprintf("access_mode = %q", mode), "host-a"))
		all = append(all, r)
	}
	return all
}

// lostTo checks the error of a rival that lost, and that its state is empty.
func (r *rival) lostTo(t *testing.T, winners []*rival) {
	t.Helper()
	says(t, r.printed, "The volume could not be bound", "can't be reserved "+r.mode, "it is held by binding \"data\" of owner \""+winners[0].mode+"-")
	named := 0
	for _, w := range winners {
		if strings.Contains(r.printed, fmt.Sprintf("%q", w.owner)) {
			named++
		}
	}
	if named == 0 {
		t.Errorf("no holder is named:\n%s", r.printed)
	}
	if !isEmpty(t, r.CLI) {
		t.Errorf("%s has something in its state", r.owner)
	}
}

func TestAccVolumeBinding_ContentionHasOneWinner(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "contended", "wanted", acctest.LUN(t, l, true, ""))
	won, lost := contend(rivals(t, l, 20, "contended", "write-exclusive"))
	if len(won) != 1 {
		t.Fatalf("it went to %d; one loser was told:\n%s", len(won), lost[0].printed)
	}
	for _, r := range lost {
		r.lostTo(t, won)
	}
	heldBy(t, l, "contended", "wanted", won[0].owner+"/data write-exclusive")
	if err := secretsOn(l, map[string]int{"host-a": 1, "host-b": 0})(nil); err != nil {
		t.Error(err)
	}
	won[0].Must("destroy", "-auto-approve")
	heldBy(t, l, "contended", "wanted")
}

func TestAccVolumeBinding_ReadersOrOneWriter(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "shared", "wanted", acctest.LUN(t, l, true, ""))
	won, lost := contend(append(rivals(t, l, 10, "shared", "read-shared"), rivals(t, l, 1, "shared", "write-exclusive")...))
	if len(won) != 10 && (len(won) != 1 || won[0].mode != "write-exclusive") {
		t.Errorf("it went to %d, and %d got nothing", len(won), len(lost))
	}
	var want []string
	for _, r := range won {
		want = append(want, fmt.Sprintf("%s/data %s", r.owner, r.mode))
	}
	heldBy(t, l, "shared", "wanted", want...)
	for _, r := range lost {
		r.lostTo(t, won)
	}
	var group sync.WaitGroup
	for _, r := range won {
		group.Go(func() { r.printed, r.err = r.Run("destroy", "-auto-approve", "-no-color") })
	}
	group.Wait()
	for _, r := range won {
		if r.err != nil {
			t.Errorf("%s: %v\n%s", r.owner, r.err, r.printed)
		}
	}
	heldBy(t, l, "shared", "wanted")
}
