package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

const (
	// handover is how long a machine waits for others that are about to release the image. yield is how long it waits for one that is
	// also only published and has precedence: that one must see this one withdraw before its own time is over.
	handover = 2 * time.Minute
	yield    = time.Minute
	// lookAgain is how long an event is waited for: libvirt sends events for most changes of a domain, but not for a device that is
	// removed from its stored definition.
	lookAgain = 3 * time.Second
	// answerTime is the timeout of hosts whose answer is not required.
	answerTime = 5 * time.Second
)

// Waiter is a Looker that can wait for changes of a domain.
type Waiter interface {
	Looker
	Await(ctx context.Context, uuid string, done func(context.Context) (bool, error)) error
}

// Request is a machine that is about to use storage: to be started, or to have a disk plugged in.
type Request struct {
	// Host is the key of the machine's host; Name and UUID are the domain's.
	Host, Name, UUID string
	// From is the key of the host that the machine moves from, where it still has its storage; empty if it does not move.
	From string
	// Owner is the machine's owner; empty when none is configured.
	Owner string
	// Images are those of all its chains. Each has the access mode and the hosts for which it may be used.
	Images []volume.Image
	// Hosts returns a host by its key.
	Hosts func(key string) (Waiter, error)
	// Releases is set by what fills the storage. It reports whether this apply may still take it from a machine; otherwise none is waited
	// for.
	Releases func() bool
	// Waits is called before another machine is waited for, if it is set.
	Waits func()
}

// Acquire returns when the machine may use its images, with the domains of its host as it has seen them. It is the only protection, because
// QEMU does not stop a second writer on network storage. The machine must be published before: its stored definition must have the images,
// so that of two concurrent machines at least one sees the other. A running machine has precedence. Of two that are only published, the one
// with the lower UUID stays and waits; the other one gets an error and withdraws. A machine of the same owner, or of a former one, is
// always waited for, because Terraform updates the machine that loses a disk and the one that gets it at the same time.
//
// All hosts of a write-exclusive image must answer; for the other modes, only the machine's own. The error that names the other
// machine is ErrInUse.
func Acquire(ctx context.Context, e Request) (domains []domainxml.Definitions, err error) {
	waitCtx, cancel := within(ctx, handover)
	defer cancel()
	yielding, cancel := within(ctx, yield)
	defer cancel()
	for {
		found, domains, err := e.findConflicts(ctx)
		if err != nil || len(found) == 0 {
			return domains, err
		}
		for _, c := range found {
			if !c.passes() {
				return nil, c.refusal()
			}
		}
		if err := e.refuseHeld(found); err != nil {
			return nil, err
		}
		if e.Waits != nil {
			e.Waits()
		}
		wait := waitCtx
		if found[0].yields() {
			wait = yielding
		}
		if err := found[0].await(wait); err != nil {
			return nil, err
		}
	}
}

// refuseHeld names all machines that have the storage to be filled, and will keep it.
func (e Request) refuseHeld(found []conflict) error {
	found = slices.DeleteFunc(slices.Clone(found), func(c conflict) bool { return c.use.isPublished() })
	if len(found) == 0 || e.Releases == nil || e.Releases() {
		return nil
	}
	var names []string
	for _, c := range found {
		names = append(names, fmt.Sprintf("%s on host %s", c.use.Domain, c.use.Host))
	}
	if names = slices.Compact(names); len(names) == 1 {
		return found[0].refusal()
	}
	return fmt.Errorf("%w. All that have it: %s", found[0].refusal(), strings.Join(names, ", "))
}

func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("it was not released within %s", d))
}

// conflict is a use that excludes a request.
type conflict struct {
	Request
	image volume.Image
	use   Use
	// mode is the access mode of the conflicting use.
	mode volume.AccessMode
}

// findConflicts queries all hosts concurrently. domains are those of the machine's own host.
func (e Request) findConflicts(ctx context.Context) (found []conflict, domains []domainxml.Definitions, err error) {
	wanted, needed := e.plan()
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for key, images := range wanted {
		group.Go(func() error {
			ctx := ctx
			if !needed[key] {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, answerTime)
				defer cancel()
			}
			listed, here, err := e.findConflictsOn(ctx, key, images)
			if errors.Is(err, ErrInUse) {
				return err
			}
			if err != nil && needed[key] {
				return fmt.Errorf("whether machine %s may use its storage is not known: %w", e.Name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if found = append(found, here...); key == e.Host {
				domains = listed
			}
			return nil
		})
	}
	err = group.Wait()
	slices.SortFunc(found, conflict.compare)
	return found, domains, err
}

// plan returns the images to look for on each host, and the hosts that must answer.
func (e Request) plan() (wanted map[string][]volume.Image, needed map[string]bool) {
	wanted, needed = map[string][]volume.Image{}, map[string]bool{e.Host: true}
	for _, i := range e.Images {
		on := map[string]bool{e.Host: true}
		for _, key := range i.Hosts {
			on[key] = true
			needed[key] = needed[key] || i.AccessMode == volume.WriteExclusive
		}
		for key := range maps.Keys(on) {
			wanted[key] = append(wanted[key], i)
		}
	}
	return wanted, needed
}

func (e Request) findConflictsOn(ctx context.Context, key string,
	images []volume.Image,
) (domains []domainxml.Definitions, found []conflict, err error) {
	h, err := e.Hosts(key)
	if err == nil {
		domains, err = List(ctx, h)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, i := range images {
		if key == e.Host || i.Type == "network" || i.IsDisk() { // other paths are compared on one host only
			if err := CheckCopied(key, domains, i, e.UUID); err != nil {
				return nil, nil, err
			}
		}
		uses, err := UsersAmong(ctx, key, h, domains, i)
		if err != nil {
			return nil, nil, err
		}
		for _, u := range uses {
			if mode, ok := u.conflicting(i.AccessMode); ok && !e.isSelf(u) && !e.brings(u) {
				found = append(found, conflict{Request: e, image: i, use: u, mode: mode})
			}
		}
	}
	return domains, found, nil
}

// isSelf reports whether the use is the machine's own. UUIDs are compared on its host only, and on the one that it moves from: a domain of
// the same UUID on another host is left from a migration, or a copy of the definition.
func (e Request) isSelf(u Use) bool {
	return u.UUID == e.UUID && (u.Host == e.Host || u.Host == e.From && e.From != "")
}

// brings reports whether the use is the record of a disk that comes along with the machine.
func (e Request) brings(u Use) bool { return e.From != "" && u.movesFrom() == e.From }

// IsOfMove reports whether the use is the record of a disk that moves between hosts, and no machine.
func (u Use) IsOfMove() bool { return u.movesFrom() != "" }

// movesFrom is the key of the host from which a disk moves here, whose record the use is; empty for other uses.
func (u Use) movesFrom() string {
	if !u.isCopy || u.stored == nil {
		return ""
	}
	note, _, _ := u.stored.Journal()
	return note.From
}

// conflicting returns the access mode of the use, that of its binding or else that of its device, if it is not compatible with wanted.
func (u Use) conflicting(wanted volume.AccessMode) (mode volume.AccessMode, ok bool) {
	i := slices.IndexFunc(u.modes, func(m volume.AccessMode) bool { return !m.CompatibleWith(wanted) })
	if i < 0 {
		return "", false
	}
	return u.modes[i], true
}

// state are the fields of a use that can change while it is waited for.
func (u Use) state() [3]bool { return [3]bool{u.Live, u.Stored, u.Saved} }

// isPublished reports whether the use has not begun yet.
func (u Use) isPublished() bool {
	running := u.live != nil
	return !u.Live && !u.Saved && (running || u.Metadata.Phase == domainxml.Creating)
}

// passes reports whether waiting can resolve the conflict.
func (c conflict) passes() bool {
	u := c.use
	switch {
	case u.isCopy, u.UUID == c.UUID:
		return false
	case u.isPublished() && u.Metadata.Phase != "" && c.UUID < u.UUID:
		return true
	case u.isPublished() && u.Metadata.Phase == domainxml.Creating, c.isOfAnotherState():
		return false
	}
	return u.Metadata.Phase != "" && c.mayBeOurs()
}

// mayBeOurs reports whether the other machine may be of the same configuration: it has the same owner, or one that this configuration had
// when the machine was last changed, because it names the very image. Waiting grants no access, so that it may also be another
// configuration that was handed the volume.
func (c conflict) mayBeOurs() bool { return c.use.Metadata.Owner == c.Owner || c.use.names(c.image) }

// isOfAnotherState reports whether the other machine has the storage from another instance of the binding, although of the same owner.
// It may be about to be updated, but most likely it is in another state, which does not have this machine.
func (c conflict) isOfAnotherState() bool {
	return volume.OtherInstance(c.image.Binding, c.use.Binding)
}

// yields reports whether the other machine waits for this one and has precedence.
func (c conflict) yields() bool { return c.use.isPublished() && c.use.UUID < c.UUID }

// compare sorts conflicts that waiting can't resolve first, so that the error always names the same one.
func (c conflict) compare(other conflict) int {
	rank := func(c conflict) string { return fmt.Sprint(c.passes(), c.use.Host, c.use.Domain, c.use.Device.Key) }
	return strings.Compare(rank(c), rank(other))
}

// await waits until the conflicting use has changed, or may have.
func (c conflict) await(waitCtx context.Context) error {
	h, err := c.Hosts(c.use.Host)
	if err != nil {
		return err
	}
	err = c.use.await(waitCtx, h, c.image)
	if waitCtx.Err() != nil {
		return fmt.Errorf("%w. It was waited for: %w", c.refusal(), context.Cause(waitCtx))
	}
	return err
}

// await waits until a use of an image has changed, or may have.
func (u Use) await(waitCtx context.Context, h Waiter, image volume.Image) error {
	ctx, cancel := context.WithTimeout(waitCtx, lookAgain)
	defer cancel()
	err := h.Await(ctx, u.UUID, func(ctx context.Context) (bool, error) {
		uses, err := Users(ctx, u.Host, h, image)
		n := slices.IndexFunc(uses, func(now Use) bool { return now.UUID == u.UUID })
		return err == nil && (n < 0 || uses[n].state() != u.state()), err
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// refusal names the domain that has the image, and the remedy.
func (c conflict) refusal() error {
	u := c.use
	as := fmt.Sprintf("%s as its %s %s (%s)", c.share(), u.Device.Kind(), u.Device.Key, c.mode)
	has := "has " + as
	switch {
	case u.movesFrom() != "":
		has = "says that it moves between hosts"
	case u.isFilling():
		has = "fills it"
	case u.Live:
		has = "runs with " + as
	case u.Saved:
		has = "was saved with " + as
	}
	text := fmt.Sprintf("machine %s on host %s can't use %s (%s): domain %s on host %s %s", c.Name, c.Host, c.image.Name,
		c.image.AccessMode,
		u.Domain, u.Host, has)
	if u.movesFrom() != "" {
		return fmt.Errorf("%w: %w: %s. %s", ErrInUse, ErrMoves, text, c.advice())
	}
	if u.UUID == c.UUID && c.From != "" && u.Metadata.To != "" {
		return fmt.Errorf("%w: %w: %s", ErrInUse, ErrMovesElsewhere, text)
	}
	return fmt.Errorf("%w: %s. %s", ErrInUse, text, c.advice())
}

// ErrMoves is the error of a disk whose content is on another host.
var ErrMoves = errors.New("the disk's content is on another host")

// ErrMovesElsewhere is the error of a machine that another apply moves to another host than this one does.
var ErrMovesElsewhere = errors.New("another apply moves the machine to another host")

// share is what of the image the other machine has: a folder may be above or below it.
func (c conflict) share() string {
	if name := c.use.Image().Name; (c.image.IsFolder() || c.use.Image().IsFolder()) && name != c.image.Name {
		return name
	}
	return "it"
}

func (c conflict) advice() string {
	u := c.use
	switch {
	case u.movesFrom() == u.Host:
		return "It is copied to another host, or that was interrupted: apply that disk again, or give the copy up (virsh undefine " +
			u.Domain + ")"
	case u.movesFrom() != "":
		return "Give the machine that has it on host " + u.movesFrom() + " its new host, too, and apply again"
	case u.isFilling():
		return untilFilled
	case u.isCopy:
		return "A clone of it is being made there, or was begun and never finished. Wait until it is done, or apply that configuration " +
			"again"
	case u.UUID == c.UUID:
		return "It is a copy of this machine's own definition, as a migration leaves one. Undefine the one of the two that is not to be"
	case c.isOfAnotherState():
		return fmt.Sprintf("That machine has it from another instance of the same binding: another state has the owner %q, too, as the "+
			"copy of a configuration's folder has. Give each configuration an owner of its own, or use only one of the two. If there is "+
			"no other state, apply once more", c.Owner)
	case u.Metadata.Phase == "":
		return fmt.Sprintf("That domain is not virtclaim's. Detach the %s there (%s), or remove the domain", u.Device.Kind(),
			u.command())
	case u.Metadata.Phase == domainxml.Creating && !u.Live:
		return fmt.Sprintf("That machine is just being created%s, or its creation was interrupted and waits for another apply there",
			ofOwner(u.Metadata.Owner))
	}
	if c.Releases != nil {
		return fmt.Sprintf("Nothing is written beside a machine%s, not even one that is off. Take the disk away from it, or destroy it, "+
			"and apply again",
			ofOwner(u.Metadata.Owner))
	}
	if u.Depth > 0 {
		return fmt.Sprintf("That machine has a disk of its own over it%s, and only reads it. If so does this one, bind it read-shared "+
			"(access_mode of its virtclaim_volume_binding); otherwise this one can't write to it before that disk is removed",
			ofOwner(u.Metadata.Owner))
	}
	if u.Device.IsFolder() {
		return fmt.Sprintf("Take the filesystem away from one of the two%s. To share the folder, bind it write-shared or read-shared "+
			"(access_mode of its virtclaim_volume_binding)", ofOwner(u.Metadata.Owner))
	}
	advice := fmt.Sprintf("Nothing but this stops two writers. Take the disk away from one of the two%s, or give each machine a copy of "+
		"its own (virtclaim_disk with a copy_mode)", ofOwner(u.Metadata.Owner))
	if c.mayBeOurs() {
		advice += ". If the one is to replace the other, the old one has to go first: create_before_destroy can't be had with such a disk"
	}
	return advice
}

func ofOwner(owner string) string {
	if owner == "" {
		return ""
	}
	return " (the other is of the owner " + owner + ")"
}
