package host

import (
	"context"

	"github.com/digitalocean/go-libvirt"
)

// State is the state of a domain.
type State struct {
	// Active is true while there is a QEMU process, also for a paused guest.
	Active bool
	// Responsive is false for an active guest that can neither handle a shutdown request nor acknowledge an unplug without intervention:
	// paused, crashed or suspended. A guest that is paused temporarily, such as for a snapshot, is responsive.
	Responsive bool
	// running is true for a guest that runs, or is idle; paused for one that is paused.
	running, paused bool
	// Reason is virsh's name of the reason, such as "I/O error"; empty if libvirt has none.
	Reason string
	name   string
}

// String is virsh's name of the state.
func (s State) String() string { return s.name }

// Describe returns the state with its reason, such as "paused (I/O error)".
func (s State) Describe() string {
	if s.Reason == "" {
		return s.name
	}
	return s.name + " (" + s.Reason + ")"
}

// IsRunning reports whether the guest runs: it is neither paused nor ends.
func (s State) IsRunning() bool { return s.running }

// IsLeftByMigration reports whether the guest was paused by a migration, or for a reason that libvirtd has forgotten when it restarted.
func (s State) IsLeftByMigration() bool {
	return s.paused && (s.Reason == "" || s.Reason == pausedReasons[libvirt.DomainPausedMigration])
}

// stateNames are virsh's names, by virDomainState.
var stateNames = map[libvirt.DomainState]string{
	libvirt.DomainNostate: "no state", libvirt.DomainRunning: "running", libvirt.DomainBlocked: "idle",
	libvirt.DomainPaused: "paused", libvirt.DomainShutdown: "in shutdown", libvirt.DomainShutoff: "shut off",
	libvirt.DomainCrashed: "crashed", libvirt.DomainPmsuspended: "pmsuspended",
}

// pausedReasons are virsh's names, by virDomainPausedReason.
var pausedReasons = map[libvirt.DomainPausedReason]string{
	libvirt.DomainPausedUser: "user", libvirt.DomainPausedMigration: "migrating", libvirt.DomainPausedSave: "saving",
	libvirt.DomainPausedDump: "dumping", libvirt.DomainPausedIoerror: "I/O error", libvirt.DomainPausedWatchdog: "watchdog",
	libvirt.DomainPausedFromSnapshot: "from snapshot", libvirt.DomainPausedShuttingDown: "shutting down",
	libvirt.DomainPausedSnapshot: "creating snapshot", libvirt.DomainPausedCrashed: "crashed",
	libvirt.DomainPausedStartingUp: "starting up",
	libvirt.DomainPausedPostcopy:   "post-copy", libvirt.DomainPausedPostcopyFailed: "post-copy failed",
	libvirt.DomainPausedAPIError: "api error",
}

// passing are the reasons of temporary pauses.
var passing = map[libvirt.DomainPausedReason]bool{
	libvirt.DomainPausedMigration: true, libvirt.DomainPausedSave: true, libvirt.DomainPausedDump: true,
	libvirt.DomainPausedShuttingDown: true, libvirt.DomainPausedSnapshot: true, libvirt.DomainPausedStartingUp: true,
	libvirt.DomainPausedPostcopy: true,
}

// The reasons of a domain that is off because its power was cut, because it failed, or because it was migrated to another host. libvirtd
// forgets reasons when it restarts.
const (
	ReasonDestroyed = "destroyed"
	ReasonCrashed   = "crashed"
	ReasonFailed    = "failed"
	ReasonMigrated  = "migrated"
)

// shutoffReasons are virsh's names, by virDomainShutoffReason.
var shutoffReasons = map[libvirt.DomainShutoffReason]string{
	libvirt.DomainShutoffShutdown: "shutdown", libvirt.DomainShutoffDestroyed: ReasonDestroyed, libvirt.DomainShutoffCrashed: ReasonCrashed,
	libvirt.DomainShutoffMigrated: ReasonMigrated, libvirt.DomainShutoffSaved: "saved", libvirt.DomainShutoffFailed: ReasonFailed,
	libvirt.DomainShutoffFromSnapshot: "from snapshot", libvirt.DomainShutoffDaemon: "daemon",
}

// StateOf converts libvirt's numbers. The reasons of a running domain describe how it was started, and are left out.
func StateOf(number, reason int32) State {
	s := libvirt.DomainState(number)
	state := State{
		Active:     s != libvirt.DomainShutoff && s != libvirt.DomainNostate, // a crashed domain may be preserved
		Responsive: s == libvirt.DomainRunning || s == libvirt.DomainBlocked || s == libvirt.DomainShutdown,
		running:    s == libvirt.DomainRunning || s == libvirt.DomainBlocked,
		paused:     s == libvirt.DomainPaused,
		name:       stateNames[s],
	}
	switch {
	case s == libvirt.DomainPaused:
		state.Reason = pausedReasons[libvirt.DomainPausedReason(reason)]
		state.Responsive = passing[libvirt.DomainPausedReason(reason)]
	case s == libvirt.DomainShutoff:
		state.Reason = shutoffReasons[libvirt.DomainShutoffReason(reason)]
	case s == libvirt.DomainCrashed && libvirt.DomainCrashedReason(reason) == libvirt.DomainCrashedPanicked:
		state.Reason = "panicked"
	}
	return state
}

// State returns the state of a domain.
func (h *Host) State(ctx context.Context, id string) (State, error) {
	return onDomain(ctx, h, "read the state of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (State, error) {
		number, reason, err := l.DomainGetState(d, 0)
		if err != nil {
			return State{}, err
		}
		return StateOf(number, reason), nil
	})
}

// IsPersistent reports whether a domain has a stored definition. Without one it is transient: it disappears when it ends.
func (h *Host) IsPersistent(ctx context.Context, id string) (bool, error) {
	return onDomain(ctx, h, "look for the stored definition of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (bool, error) {
		is, err := l.DomainIsPersistent(d)
		return is != 0, err
	})
}

// DiskError is the first disk of an active domain, by target such as vda, that was stopped by an I/O error, and whether its storage is
// full; empty without one. go-libvirt does not decode the error codes, so that for one disk the code is the next value.
func (h *Host) DiskError(ctx context.Context, id string) (target string, noSpace bool, err error) {
	type halted struct {
		target  string
		noSpace bool
	}
	disk, err := onDomain(ctx, h, "read the I/O errors of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (halted, error) {
		all, code, err := l.DomainGetDiskErrors(d, 1, 0)
		if err != nil || len(all) == 0 {
			return halted{}, err
		}
		return halted{all[0].Disk, libvirt.DomainDiskErrorCode(code) == libvirt.DomainDiskErrorNoSpace}, nil
	})
	return disk.target, disk.noSpace, err
}
