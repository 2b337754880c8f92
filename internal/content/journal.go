package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// journalName is that of the domain that journals a volume: no two can have it, so it locks the volume, too.
func journalName(pool, name string) string {
	sum := sha256.Sum256([]byte(pool + "\x00" + name))
	return "virtclaim-" + hex.EncodeToString(sum[:8])
}

var journalNames = regexp.MustCompile(`^virtclaim-[0-9a-f]{16}$`)

func isJournal(name string) bool { return journalNames.MatchString(name) }

// journal is the entry of one volume on its host.
type journal struct {
	host Host
	domainxml.Journal
	// release ends the domain that tells others that this process works on the volume; nil where there is none.
	release func(context.Context) error
}

// open looks for a volume's entry; host.ErrNotFound when there is none.
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

// begin makes the entry of a volume that is about to be made. It fails when there is one. That of an upload is active from
// its first moment on, so that nobody takes it for one that was left.
func begin(ctx context.Context, h Host, owner string, s Spec) (*journal, error) {
	j := &journal{host: h, Journal: domainxml.Journal{
		Name: journalName(s.Pool, s.Name), UUID: uuid.NewString(),
		Note: domainxml.Note{
			Owner: owner, Phase: domainxml.Creating, Pool: s.Pool, Volume: s.Name, Prefix: s.Prefix,
			Generation: newGeneration(), Digest: s.digest(), Base: s.baseName,
		},
	}}
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

func (j *journal) write(ctx context.Context) error {
	text, err := domainxml.BuildJournal(j.Journal)
	if err != nil {
		return err
	}
	_, err = j.host.Define(ctx, text)
	return err
}

// finish gives the volume, which is whole and which nobody has open, its identity, and notes that. The entry stays until the volume
// is in somebody's state.
func (j *journal) finish(ctx context.Context) error {
	v, err := j.host.Volume(ctx, j.Note.Pool, j.Note.Volume)
	if err == nil {
		err = identify(ctx, j.host, asProbed(v), j.Note.Generation)
	}
	if err != nil {
		return err
	}
	j.Note.Phase, j.Copy = domainxml.Done, nil
	return j.write(ctx)
}

// stop ends the entry's domain, and with it the copy that it makes, if any.
func (j *journal) stop(ctx context.Context) error {
	if j.release != nil {
		release := j.release
		j.release = nil
		return release(ctx)
	}
	state, err := j.host.State(ctx, j.UUID)
	if err != nil || !state.Active {
		return err
	}
	return j.host.StopCopier(ctx, j.UUID)
}

// drop removes the entry of a volume that was not made, also when the operation's time is over. What has the volume's name
// is somebody else's.
func (j *journal) drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	err := ignoreNotFound(j.host.Undefine(ctx, j.UUID))
	if j.release != nil {
		err = errors.Join(err, ignoreNotFound(j.stop(ctx)))
	}
	return err
}

// discard removes the volume, which nobody can be using yet, and the entry. Of one that is held the domain goes last: as long
// as it is there nobody else begins. An entry that is gone was taken over, and the volume with it: then both are left.
func (j *journal) discard(ctx context.Context) error {
	held := j.release != nil
	if held {
		if err := j.checkMine(ctx); err != nil {
			_ = j.stop(ctx) // it ends with its connection at the latest
			return err
		}
	} else if err := j.stop(ctx); err != nil {
		return ignoreNotFound(err)
	}
	err := j.checkUsers(ctx)
	if err == nil {
		err = ignoreNotFound(j.host.DeleteVolume(ctx, j.Note.Pool, j.Note.Volume))
	}
	if err == nil {
		err = Disown(ctx, j.host, j.Note.Pool, j.Note.Volume, j.Note.Generation)
	}
	if err == nil {
		err = dropRecord(ctx, j.host, masterUsage(j.Note.Generation))
	}
	if err == nil {
		err = ignoreNotFound(j.host.Undefine(ctx, j.UUID))
	}
	if held {
		err = errors.Join(err, ignoreNotFound(j.stop(ctx)))
	}
	return err
}

// checkUsers refuses to delete a volume that a domain of others uses: somebody else has created it under the name of the one that was
// to be made.
func (j *journal) checkUsers(ctx context.Context) error {
	v, err := j.host.Volume(ctx, j.Note.Pool, j.Note.Volume)
	if err != nil {
		return ignoreNotFound(err)
	}
	domains, err := j.host.Domains(ctx)
	if err != nil {
		return err
	}
	user := ""
	err = eachUse(domains, v, func(d host.Domain, mark domainxml.Mark, _ volume.Image) {
		if mark.Phase == "" && !isJournal(d.Name) {
			user = d.Name
		}
	})
	if err == nil && user != "" {
		err = j.foreign("is half made, but is used by the domain " + user)
	}
	return err
}

// ignoreNotFound is the error, unless it is that of something that is not there.
func ignoreNotFound(err error) error {
	if errors.Is(err, host.ErrNotFound) {
		return nil
	}
	return err
}

// removeStale is discard of what a dead maker has left, by one of those who want its name: the others would take what the
// first one begins for the same.
func (m *Creator) removeStale(ctx context.Context, key string, left *journal) error {
	return m.locked(ctx, key, left.host, func(ctx context.Context) error {
		now, err := open(ctx, left.host, left.Note.Pool, left.Note.Volume)
		if err != nil || now.UUID != left.UUID {
			return ignoreNotFound(err)
		}
		return now.discard(ctx)
	})
}

// Import says that a volume is coming into somebody's state by an import: its entry is removed. One that is half made is
// an error.
func Import(ctx context.Context, h Host, pool, name string) error {
	j, err := open(ctx, h, pool, name)
	if errors.Is(err, host.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if j.Note.Phase != domainxml.Done {
		return fmt.Errorf("the volume %s in storage pool %s is half made, as the domain %s says: only the creation that was interrupted can "+
			"make it whole. To remove it: virsh undefine %s; virsh vol-delete %s --pool %s", name, pool, j.Name, j.Name, name, pool)
	}
	return h.Undefine(ctx, j.UUID)
}

// Forget removes the entry of a volume that is in state: it is ours now without it. An entry of another generation tells
// that ours is gone, and that what has its name now was made by somebody else: that is host.ErrNotFound.
func Forget(ctx context.Context, h Host, pool, name, generation string) error {
	j, err := open(ctx, h, pool, name)
	switch {
	case errors.Is(err, host.ErrNotFound):
		return nil
	case err != nil:
		return err
	case j.Note.Generation != generation:
		return fmt.Errorf("the volume %s in storage pool %s: %w; the domain %s says that %s made another one under its name", name, pool,
			host.ErrNotFound, j.Name, called(j.Note.Owner))
	}
	if err := h.Undefine(ctx, j.UUID); !errors.Is(err, host.ErrNotFound) {
		return err
	}
	return nil
}
