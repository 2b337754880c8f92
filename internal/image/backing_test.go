package image

import (
	"encoding/binary"
	"path/filepath"
	"testing"
)

// A backing file is read in the form that QEMU writes, and told is false if it can't be read.
func TestBacking_OfImagesThatQEMUMakes(t *testing.T) {
	dir := t.TempDir()
	base, over := filepath.Join(dir, "base"), filepath.Join(dir, "over")
	qemuImg(t, "create", "-q", "-f", "raw", base, "1M")
	qemuImg(t, "create", "-q", "-f", "qcow2", "-F", "raw", "-b", base, over)
	expect := func(want string) {
		t.Helper()
		if got, told := Backing(headOf(t, over)); got != want || !told {
			t.Errorf("%q, %v instead of %q", got, told, want)
		}
		if head := headOf(t, over); !IsWholeHeader(head[:4096]) || IsWholeHeader(head[:120]) {
			t.Error("it is not known where the header ends")
		}
	}
	expect(base)
	giveIdentity(t, over, anID)
	expect(base)
	qemuImg(t, "rebase", "-u", "-F", "raw", "-b", "base", over)
	expect("base")
	qemuImg(t, "rebase", "-b", "", over)
	expect("")
	far := headOf(t, over)
	binary.BigEndian.PutUint64(far[qcow2Backing:], 1<<63)
	binary.BigEndian.PutUint32(far[qcow2BackingSize:], 1<<31)
	for name, head := range map[string][]byte{"empty": nil, "raw": make([]byte, 512), "cut off": far[:16], "far away": far} {
		if got, told := Backing(head); told {
			t.Errorf("%s: %q", name, got)
		}
	}
}
