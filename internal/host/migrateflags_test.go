package host

import (
	"testing"

	"github.com/digitalocean/go-libvirt"
)

// A migration never copies disks, which would write onto the storage that both hosts have open, and never leaves a definition that could be
// started a second time.
func TestMigration_CopiesNoDisk(t *testing.T) {
	for name, m := range map[string]Migration{
		"network storage": {}, "shared files": {SharedFiles: true}, "everything": {AutoConverge: true, PostCopy: true, SharedFiles: true},
	} {
		flags := m.flags()
		if flags&(libvirt.MigrateNonSharedDisk|libvirt.MigrateNonSharedInc) != 0 {
			t.Errorf("%s: it copies disks: %#x", name, flags)
		}
		const whole = libvirt.MigratePersistDest | libvirt.MigrateUndefineSource
		if flags&whole != whole {
			t.Errorf("%s: the definition does not move: %#x", name, flags)
		}
	}
}
