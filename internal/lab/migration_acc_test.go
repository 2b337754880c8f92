//go:build acc

package lab

import (
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// recordsOf is what guests have written to a LUN.
func recordsOf(t *testing.T, lun LUN) string {
	t.Helper()
	return storedAt(t, lun.Path, RecordsAt, RecordsSize)
}

// awaitRecords waits until a guest has written that many more records, all of which must be whole, and returns the number of all.
func awaitRecords(t *testing.T, lun LUN, more int) (count int) {
	t.Helper()
	before, _ := CheckRecords(recordsOf(t, lun))
	await(t, "more records", func() bool {
		var err error
		if count, err = CheckRecords(recordsOf(t, lun)); err != nil {
			t.Fatal(err)
		}
		return count >= before+more
	})
	return count
}

func state(t *testing.T, h *Host, domain string) string {
	t.Helper()
	return strings.TrimSpace(virsh(t, h, "domstate", domain))
}

// Two guests change places at once, and then one moves back through taps.
func TestAccMigration_GuestGoesOnWriting(t *testing.T) {
	l := sharedLab(t)
	a, b := l.Hosts["host-a"], l.Hosts["host-b"]
	to := map[string]*Host{"east": b, "west": a}
	from := map[string]*Host{"east": a, "west": b}
	luns := map[string]LUN{}
	for name, h := range from {
		luns[name] = addLUN(t, l, LUNSpec{Size: lunSize, Content: []byte("content")})
		boot(t, h, guest{name: name, disk: iscsiDisk(l, luns[name], ""), log: guestLog(t, h), cmdline: "virtclaim.disks=1 " + WriteRecords("vda")})
		awaitRecords(t, luns[name], 3)
	}

	var both errgroup.Group
	for name, h := range from {
		both.Go(func() error {
			_, err := h.Virsh(t.Context(), "migrate", "--live", "--p2p", "--persistent", "--undefinesource", name, MigrationURI(to[name].URI))
			return err
		})
	}
	if err := both.Wait(); err != nil {
		t.Fatal(err)
	}
	for name := range from {
		awaitRecords(t, luns[name], 3)
		if got := state(t, to[name], name); got != "running" {
			t.Errorf("%s is %s on %s", name, got, to[name].Name)
		}
		if out, err := from[name].Virsh(t.Context(), "domstate", name); err == nil {
			t.Errorf("%s is left on %s: %s", name, from[name].Name, out)
		}
	}

	testHeldMigration(t, b, a, luns["east"])
	content := recordsOf(t, luns["east"])
	if _, err := CheckRecords(content[:5*recordSize] + content[6*recordSize:]); err == nil {
		t.Error("a record is cut out, but they are whole")
	}
	virsh(t, a, "reset", "east") // what starts again finds records
	await(t, "a record that is written twice", func() bool {
		_, err := CheckRecords(recordsOf(t, luns["east"]))
		return err != nil && strings.Contains(err.Error(), "twice")
	})
	for _, name := range []string{"east", "west"} {
		virsh(t, a, "destroy", name)
		virsh(t, a, "undefine", name)
		if err := l.Target.RemoveLUN(t.Context(), luns[name]); err != nil {
			t.Error(err)
		}
	}
}

// testHeldMigration moves a guest by a client's own calls to both hosts, the first of which is refused once, and one is held.
func testHeldMigration(t *testing.T, from, to *Host, lun LUN) {
	t.Helper()
	taps := map[*Host]*Tap{}
	for _, h := range []*Host{from, to} {
		tap, err := NewTap(t.Context(), h, h.Dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tap.Close() }()
		taps[h] = tap
	}
	migrate := func() ([]byte, error) {
		return exec.CommandContext(t.Context(), "virsh", "-c", taps[from].URI, "migrate", "--live", "--persistent", "--undefinesource", "east",
			taps[to].URI).CombinedOutput()
	}
	taps[to].Arm(Fault{Call: CallMigratePrepare, Nth: 1, Refuse: true})
	if out, err := migrate(); err == nil || !taps[to].Fired() {
		t.Errorf("it moves where it may not, fired is %t: %s", taps[to].Fired(), out)
	}
	awaitRecords(t, lun, 2)

	taps[to].Arm(Fault{Call: CallMigrateFinish, Nth: 1, Hold: true})
	var moving errgroup.Group
	moving.Go(func() error { _, err := migrate(); return err })
	await(t, "the last call but one", taps[to].Fired)
	if here, there := state(t, from, "east"), state(t, to, "east"); here != "paused" || there != "paused" {
		t.Errorf("while it moves, it is %s here, and %s there", here, there)
	}
	taps[to].Release()
	if err := moving.Wait(); err != nil {
		t.Fatal(err)
	}
	awaitRecords(t, lun, 3)
	for call, h := range map[Call]*Host{
		CallMigrateBegin: from, CallMigratePrepare: to, CallMigratePerform: from, CallMigrateFinish: to, CallMigrateConfirm: from,
	} {
		if taps[h].Calls(call) == 0 {
			t.Errorf("no call of %s at %s", call, h.Name)
		}
	}
}
