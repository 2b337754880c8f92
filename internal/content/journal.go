package content

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// journalName is the name of the domain that is a volume's journal. Names of domains are unique, so that the journal is also a lock.
func journalName(pool, name string) string { return host.JournalName(pool, name) }

var journalNames = regexp.MustCompile(`^virtclaim-[0-9a-f]{16}$`)

func isJournal(name string) bool { return journalNames.MatchString(name) }

// journal is the journal of one volume on its host.
type journal struct {
	host Host
	domainxml.Journal
	// release ends the domain that shows other processes that this one creates the volume; nil where there is none.
	release func(context.Context) error
	// confirm is that of the specification; it may be nil.
	confirm func(ctx context.Context, v host.StorageVolume, generation string) error
	// bases are the shared images below the finished volume, the lowest one last.
	bases []volume.Image
}

// creator is the domain that is active as long as the volume is being created.
func (j *journal) creator() string { return cmp.Or(j.Note.Creator, j.UUID) }

// open returns the journal of a volume; host.ErrNotFound if there is none.
func open(ctx context.Context, h Host, pool, name string) (*journal, error) {
	id, err := h.LookupByName(ctx, journalName(pool, name))
	if err != nil {
		return nil, err
	}
	text, err := h.StoredXML(ctx, id)
	if err != nil {
		return nil, err
	}
	note, ok, err := domainxml.ParseJournal(text)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("the domain %s has the name of a journal of virtclaim's but is none; it is in the way of making volume "+
			"%s in storage pool %s", journalName(pool, name), name, pool)
	}
	return &journal{host: h, Journal: domainxml.Journal{Name: journalName(pool, name), UUID: id, Note: note}}, nil
}

// begin creates the journal of a volume that is about to be created; host.ErrExists when there is one. The journal of an upload is
// active from the start, so that other processes don't take it for an abandoned one.
func begin(ctx context.Context, h Host, owner string, s Spec) (*journal, error) {
	j := &journal{host: h, confirm: s.Confirm, Journal: domainxml.Journal{
		Name: journalName(s.Pool, s.Name), UUID: uuid.NewString(),
		Note: domainxml.Note{
			Owner: owner, Pool: s.Pool, Volume: s.Name, Prefix: s.Prefix, Generation: cmp.Or(s.generation,
				newGeneration()), Bases: s.baseNames,
		},
	}}
	if s.from != nil {
		j.Note.From, j.Note.FromPool = s.from.Host, s.from.Pool
	}
	if s.Content != nil {
		text, err := domainxml.BuildJournal(j.Journal)
		if err != nil {
			return j, err
		}
		release, err := h.Hold(ctx, text)
		if err != nil {
			return j, err
		}
		rest := j.heartbeat(ctx)
		j.release = func(ctx context.Context) error {
			rest()
			return release(ctx)
		}
	}
	return j, j.write(ctx)
}

// beginBase creates the journal of a shared image below the volume of this one, whose domain must be active from before until after it:
// without that, other processes take the image for an abandoned one. host.ErrExists is the error when there is a journal.
func (j *journal) beginBase(ctx context.Context, s Spec) (*journal, error) {
	b := &journal{
		host: j.host,
		Journal: domainxml.Journal{
			Name: journalName(s.Pool, s.Name), UUID: uuid.NewString(),
			Note: domainxml.Note{Creator: j.UUID, Pool: s.Pool, Volume: s.Name, Generation: newGeneration()},
		},
		release: func(context.Context) error { return nil }, // the domain goes on for the other images
	}
	text, err := domainxml.BuildJournal(b.Journal)
	if err != nil {
		return b, err
	}
	return b, j.host.Reserve(ctx, text)
}

func (j *journal) write(ctx context.Context) error {
	text, err := domainxml.BuildJournal(j.Journal)
	if err != nil {
		return err
	}
	_, err = j.host.Define(ctx, text)
	return err
}

// finish assigns the complete volume, which is not open anywhere, its identity, and removes the journal.
func (j *journal) finish(ctx context.Context, v host.StorageVolume) error {
	err := identify(ctx, j.host, asProbed(v), j.Note.Generation)
	if err == nil && j.confirm != nil {
		err = j.confirm(ctx, v, j.Note.Generation)
	}
	if err != nil {
		return err
	}
	if j.Note.From != "" {
		return j.waitForContent(ctx, v)
	}
	if err = j.host.Undefine(ctx, j.UUID); err != nil { // it may be gone, and the answer lost: without a journal the volume would be left
		err = j.host.Undefine(ctx, j.UUID)
	}
	return j.orLeft(ignoreNotFound(err))
}

// undefine removes the journal of a complete shared image, which others may use from then on. That fails if another process has taken the
// journal over.
func (j *journal) undefine(ctx context.Context, _ host.StorageVolume) error {
	err := j.host.Undefine(ctx, j.UUID)
	if err != nil && !errors.Is(err, host.ErrNotFound) { // it may be gone, and the answer lost
		err = ignoreNotFound(j.host.Undefine(ctx, j.UUID))
	}
	return err
}

// orLeft adds to an error that the volume, which is finished, may be left without a journal.
func (j *journal) orLeft(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\n\nLeft behind, perhaps: the volume %s in storage pool %s, which is finished. Import it, or remove it: virsh "+
		"vol-delete %[2]s --pool %[3]s",
		err, j.Note.Volume, j.Note.Pool)
}

// stop ends the journal's domain, and with it a copy that runs in it.
func (j *journal) stop(ctx context.Context) error {
	if j.release != nil {
		release := j.release
		j.release = nil
		return release(ctx)
	}
	active, err := j.isActive(ctx)
	if err != nil || !active {
		return err
	}
	return j.ignoreEnded(j.host.StopCopier(ctx, j.creator()))
}

// isActive reports whether the creator's domain is active.
func (j *journal) isActive(ctx context.Context) (bool, error) {
	state, err := j.host.State(ctx, j.creator())
	return err == nil && state.Active, j.ignoreEnded(err)
}

// ignoreEnded returns nil for the error of a domain that is gone, unless it was the journal's own one: then the journal is gone, too.
func (j *journal) ignoreEnded(err error) error {
	if j.Note.Creator == "" {
		return err
	}
	return ignoreNotFound(err)
}

// remove removes the journal of a volume that was not created, also after the operation's timeout. A volume of that name belongs to
// another process.
func (j *journal) remove(ctx context.Context) error {
	ctx, cancel := revert.Context(ctx)
	defer cancel()
	err := ignoreNotFound(j.host.Undefine(ctx, j.UUID))
	if j.release != nil {
		err = errors.Join(err, ignoreNotFound(j.stop(ctx)))
	}
	return err
}

// removeWithVolume removes the volume, which can't be in use yet, and the journal. An active journal is removed last, because it keeps
// other processes from beginning. If the journal is missing, another process has taken over both: then the volume is left alone.
func (j *journal) removeWithVolume(ctx context.Context) error {
	if j.release == nil {
		err := j.stop(ctx)
		if err == nil && j.Note.Creator != "" { // it may have finished the volume before it ended
			_, err = j.host.State(ctx, j.UUID)
		}
		if err != nil {
			return ignoreNotFound(err)
		}
		return j.removeBoth(ctx)
	}
	if err := j.checkMine(ctx); err != nil {
		_ = j.stop(ctx) // on an error, libvirtd ends it together with the connection
		return err
	}
	return errors.Join(j.removeBoth(ctx), ignoreNotFound(j.stop(ctx)))
}

// removeBoth removes the volume, what the host has because of it, and the journal's definition.
func (j *journal) removeBoth(ctx context.Context) error {
	if err := j.checkUsers(ctx); err != nil {
		return err
	}
	if err := ignoreNotFound(j.host.DeleteVolume(ctx, j.Note.Pool, j.Note.Volume)); err != nil {
		return err
	}
	if err := Disown(ctx, j.host, j.Note.Pool, j.Note.Volume, j.Note.Generation); err != nil {
		return err
	}
	if err := dropRecord(ctx, j.host, masterUsage(j.Note.Generation)); err != nil {
		return err
	}
	return ignoreNotFound(j.host.Undefine(ctx, j.UUID))
}

// checkUsers refuses to delete a volume that a foreign domain uses: another tool has created it under the name that the journal
// reserves.
func (j *journal) checkUsers(ctx context.Context) error {
	v, err := j.host.Volume(ctx, j.Note.Pool, j.Note.Volume)
	if err != nil {
		return ignoreNotFound(err)
	}
	opened, err := openedOn(ctx, j.host)
	user := ""
	for i := range opened.of(v) {
		if (i.metadata.Phase == "" || j.Note.From != "") && !isJournal(i.domain.Name) { // one that moves may be its machine's by now
			user = i.domain.Name
		}
	}
	if err == nil && user != "" {
		err = j.foreign("is incomplete, but is used by the domain " + user)
	}
	return err
}

// ignoreNotFound returns nil for host.ErrNotFound, and every other error unchanged.
func ignoreNotFound(err error) error {
	if errors.Is(err, host.ErrNotFound) {
		return nil
	}
	return err
}

// removeStale discards what a dead creator has left. It runs under the host's lock and compares the journal's UUID: of several
// processes that want the name, one removes the journal, and the others must not remove the one that the first begins next.
func (m *Creator) removeStale(ctx context.Context, key string, left *journal) error {
	return m.locked(ctx, key, left.host, func(ctx context.Context) error {
		now, err := open(ctx, left.host, left.Note.Pool, left.Note.Volume)
		if err != nil || now.UUID != left.UUID {
			return ignoreNotFound(err)
		}
		return now.removeWithVolume(ctx)
	})
}

// CheckImport is the error of a volume that is being created.
func CheckImport(ctx context.Context, h Host, pool, name string) error {
	j, err := open(ctx, h, pool, name)
	if err != nil {
		return ignoreNotFound(err)
	}
	if j.Note.From != "" {
		return j.errMoves()
	}
	return fmt.Errorf("the volume %s in storage pool %s is incomplete, as the domain %s says: only the creation that was interrupted can "+
		"make it whole. To remove it: virsh undefine %s; virsh vol-delete %s --pool %s", name, pool, j.Name, j.Name, name, pool)
}
