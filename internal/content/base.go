package content

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// BasePrefix starts the names of images that disks share. The rest of a name depends on the content and the host alone, so that all
// configurations find the same image. Shared images have no owner: they are deleted together with the last disk over them.
const BasePrefix = volume.BasePrefix

// IsBase reports whether the path is that of an image that disks share.
func IsBase(path string) bool { return volume.IsBase(path) }

// BasesOf returns the shared images below a disk, the lowest one last. They are complete, because overlays are created only over complete
// ones.
func BasesOf(ctx context.Context, h Host, disk host.StorageVolume) (bases []volume.Image, err error) {
	for at := disk; IsBase(at.Backing) && len(bases) < maxLayers; {
		if at, err = h.Volume(ctx, disk.Pool, filepath.Base(at.Backing)); errors.Is(err, host.ErrNotFound) {
			err = errNoBase
		}
		if err != nil {
			return nil, err
		}
		bases = append(bases, volume.Image{Name: at.Path, Format: asProbed(at).Format})
	}
	if len(bases) == 0 {
		err = errNoBase
	}
	return bases, err
}

// namesOfBases are the names of the shared images on a host, the lowest one first. Two hosts with one folder as their pool have an image
// each, because neither sees the domains and journals of the other.
func (s Spec) namesOfBases(ctx context.Context, h Host) (names []string, err error) {
	var ids []string
	if s.Base != nil {
		ids = append(ids, s.Base.ID)
	}
	for _, l := range s.Layers {
		ids = append(ids, layerID(l))
	}
	if len(ids) == 0 {
		return nil, nil
	}
	host, err := h.UUID(ctx)
	for _, id := range ids {
		sum := sha256.Sum256([]byte(host + " " + id))
		names = append(names, BasePrefix+hex.EncodeToString(sum[:]))
	}
	return names, err
}

// CheckBase reports whether the host has the shared image already, so that nothing is downloaded, and refuses one that is larger than the
// volume.
func (s Spec) CheckBase(ctx context.Context, h Host) (has bool, err error) {
	names, err := s.namesOfBases(ctx, h)
	if err != nil || s.Base == nil || s.Pool == "" {
		return false, err
	}
	base, err := h.Volume(ctx, s.Pool, names[0])
	if errors.Is(err, host.ErrNoPool) || errors.Is(err, host.ErrNotFound) { // the pool may be made before
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, s.holds("the image", asProbed(base).Capacity)
}

// overBase creates an overlay of the shared images, and before it those that do not exist.
func (m *Creator) overBase(ctx context.Context, key string, j *journal, s Spec,
	report func(host.Progress),
) (made host.StorageVolume, err error) {
	var release func()
	defer func() {
		if release != nil {
			release()
		}
	}()
	var mine map[string]host.StorageVolume
	for {
		// No base must be deleted before the overlay that names it exists.
		err := m.locked(ctx, key, j.host, func(ctx context.Context) error {
			bases, err := finishedBases(ctx, j.host, s, mine)
			if errors.Is(err, errNoBase) && release == nil { // creating a base can take minutes
				// Who deletes bases reads the domains under the mutex: later, it could delete those below after it has read them.
				release, err = j.live(ctx)
				return cmp.Or(err, errNoBase)
			}
			if err != nil {
				return err
			}
			j.bases = imagesOf(bases)
			if err = s.noteImage(ctx, j.host); err == nil {
				made, err = makeOverlay(ctx, j.host, s, bases[len(bases)-1])
			}
			return err
		})
		if err == nil {
			return made, j.finish(ctx, made)
		}
		if !errors.Is(err, errNoBase) {
			return made, err
		}
		if mine, err = m.makeBases(ctx, key, j, s, report); err != nil {
			return made, fmt.Errorf("the image that disks of pool %s share: %w", s.Pool, err)
		}
	}
}

// makeBases creates the shared images that are not there, and returns those that no other process has made.
func (m *Creator) makeBases(ctx context.Context, key string, j *journal, s Spec,
	report func(host.Progress),
) (mine map[string]host.StorageVolume, err error) {
	records, err := j.host.SecretsOfVolumes(ctx)
	if err != nil {
		return nil, err
	}
	b := &bases{creator: m, key: key, journal: j, pool: s.Pool, records: records, made: map[string]host.StorageVolume{}, report: report}
	if s.Base != nil {
		err = b.make(ctx, s.baseNames[0], s.Base)
	} else {
		err = b.makeLayers(ctx, s)
	}
	return b.made, err
}

// imagesOf are the images of a chain, the lowest one last.
func imagesOf(bases []host.StorageVolume) (images []volume.Image) {
	for _, v := range slices.Backward(bases) {
		images = append(images, volume.Image{Name: v.Path, Format: v.Format})
	}
	return images
}

// finishedBases are the shared images below a volume, the lowest one first, all of which are complete and were not written to. mine are
// those that this process has completed since the volume's journal is active. The journals are looked for before and after the images: a
// creation may have been reverted, or begun, in between.
func finishedBases(ctx context.Context, h Host, s Spec, mine map[string]host.StorageVolume) (all []host.StorageVolume, err error) {
	domains, err := h.Domains(ctx)
	if err != nil {
		return nil, err
	}
	read, err := guard.Read(ctx, h, domains)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, d := range domains {
		names[d.Name] = true
	}
	look := baseLook{Spec: s, host: h, opened: OpenedBy(read), mine: mine}
	if look.records, err = h.SecretsOfVolumes(ctx); err != nil {
		return nil, err
	}
	for n := 0; n < len(s.baseNames) && err == nil; n++ {
		if names[journalName(s.Pool, s.baseNames[n])] {
			return nil, errNoBase
		}
		var v host.StorageVolume
		v, err = look.finished(ctx, n)
		all = append(all, v)
	}
	if err != nil {
		return nil, err
	}
	if names, err = domainNames(ctx, h); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(s.baseNames, func(name string) bool { return names[journalName(s.Pool, name)] }) {
		return nil, errNoBase
	}
	return all, nil
}

// baseLook is a look at all shared images below a volume.
type baseLook struct {
	Spec
	host    Host
	opened  Opened
	records map[string]string
	mine    map[string]host.StorageVolume
}

// finished is one of the images, and errNoBase when it is not complete. The header is checked beside the journal, because that may have
// been lost.
func (l baseLook) finished(ctx context.Context, n int) (v host.StorageVolume, err error) {
	v, isMine := l.mine[l.baseNames[n]]
	if !isMine {
		v, err = l.host.Volume(ctx, l.Pool, l.baseNames[n])
	}
	if err == nil && !isMine {
		err = checkFinished(ctx, l.host, v)
	}
	if errors.Is(err, host.ErrNotFound) {
		err = errNoBase
	}
	v = asProbed(v)
	if err == nil {
		err = refuseWritten(l.opened, v)
	}
	if err == nil {
		err = l.refuseOther(n, v)
	}
	if err == nil {
		err = checkUnchanged(ctx, l.host, v, l.records[baseUsage(v.Pool, v.Name)])
	}
	return v, err
}

func domainNames(ctx context.Context, h Host) (map[string]bool, error) {
	domains, err := h.List(ctx)
	names := map[string]bool{}
	for _, d := range domains {
		names[d.Name] = true
	}
	return names, err
}

// errNoBase is the error of a base that is missing or unfinished. It is not host.ErrNotFound, because the disk over it exists.
var errNoBase = errors.New("the image that it shares with others is not there")

// finishedBase is a base that is complete; errNoBase when there is none. The header is checked beside the journal, of which domains have
// the name, because the journal may have been lost.
func finishedBase(ctx context.Context, h Host, domains map[string]bool, pool, name string) (v host.StorageVolume, err error) {
	if domains[journalName(pool, name)] {
		return v, errNoBase
	}
	if v, err = h.Volume(ctx, pool, name); err == nil {
		err = checkFinished(ctx, h, v)
	}
	if errors.Is(err, host.ErrNotFound) {
		err = errNoBase
	}
	return asProbed(v), err
}

// checkFinished is errNoBase for an image whose header says that it is not complete.
func checkFinished(ctx context.Context, h Host, v host.StorageVolume) error {
	unfinished, err := isUnfinished(ctx, h, v)
	if err == nil && unfinished {
		err = errNoBase
	}
	return err
}

// refuseWritten refuses an image that disks share and that a domain writes to, or would at its next start, as after virsh blockcommit
// without --base: it is no longer what was downloaded.
func refuseWritten(opened Opened, base host.StorageVolume) error {
	writer, format := "", ""
	for i := range opened.of(base) {
		if i.AccessMode != volume.ReadShared {
			writer, format = i.domain.Name, i.Format
		}
	}
	if writer == "" {
		return nil
	}
	return fmt.Errorf("domain %s has the image %s of storage pool %s, which disks share, open for writing, as after virsh blockcommit "+
		"without --base: no other disk over it can be used any more. Save what the domain has (stop it, and copy the image: %s), and "+
		"remove all disks over it: the next one downloads it again",
		writer, base.Name, base.Pool, image.ConvertCommand(format, "qcow2", base.Path))
}

func isUnfinished(ctx context.Context, h Host, v host.StorageVolume) (bool, error) {
	if v.Physical < sector {
		return true, nil
	}
	return h.IsUnfinished(ctx, v.Pool, v.Name)
}

func makeOverlay(ctx context.Context, h Host, s Spec, base host.StorageVolume) (host.StorageVolume, error) {
	if s.Capacity == 0 {
		s.Capacity = base.Capacity
	}
	if err := s.holds("the image", base.Capacity); err != nil {
		return host.StorageVolume{}, err
	}
	s.Mode, s.Master = volume.CopyOnWrite, volume.Volume{Images: []volume.Image{{Type: "file", Format: base.Format, Name: base.Path}}}
	if err := h.CreateVolume(ctx, s.Pool, s.xml(), false); err != nil {
		return host.StorageVolume{}, err
	}
	return h.Volume(ctx, s.Pool, s.Name)
}

// bases are the shared images below a volume, while those are made that are not there.
type bases struct {
	creator *Creator
	key     string
	// journal is that of the volume; its domain is active.
	journal *journal
	pool    string
	// records are the UUIDs of the host's secrets.
	records map[string]string
	// made are those that were made here.
	made   map[string]host.StorageVolume
	report func(host.Progress)
}

// make creates a base, or waits for another process that does: then the caller checks whether it is there.
func (b *bases) make(ctx context.Context, name string, content *Image) error {
	h, s := b.journal.host, Spec{Pool: b.pool, Name: name, Content: content}
	j, err := b.journal.beginBase(ctx, s)
	if err != nil {
		return errors.Join(b.creator.awaitFaster(ctx, b.key, j, err), j.remove(ctx)) // the journal may exist although begin failed
	}
	finish := func(ctx context.Context, v host.StorageVolume) error {
		if record := b.records[baseUsage(b.pool, name)]; record != "" { // of an image that was removed outside of Terraform
			if err := ignoreNotFound(h.UndefineSecret(ctx, record)); err != nil {
				return err
			}
		}
		return j.undefine(ctx, v)
	}
	var v host.StorageVolume
	err = host.ErrExists
	if content.layer != nil { // another image's download begins before its volume is created
		v, err = j.upload(ctx, s, b.report, finish)
	}
	if errors.Is(err, host.ErrExists) {
		if is, err := j.isThere(ctx); is || err != nil {
			return errors.Join(err, j.remove(ctx)) // another process has finished it in between
		}
		v, err = j.upload(ctx, s, b.report, finish)
	}
	if errors.Is(err, host.ErrExists) {
		return errors.Join(err, j.remove(ctx))
	}
	if err != nil {
		return undo(ctx, j, err)
	}
	b.made[name] = v
	return nil
}

// isThere reports whether the journal's volume exists by now, and removes an incomplete one that has no other journal any more.
func (j *journal) isThere(ctx context.Context) (bool, error) {
	v, err := j.host.Volume(ctx, j.Note.Pool, j.Note.Volume)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	if unfinished, err := isUnfinished(ctx, j.host, v); err != nil || !unfinished {
		return err == nil, err
	}
	if err := j.checkMine(ctx); err != nil {
		return false, err
	}
	return false, ignoreNotFound(j.host.DeleteVolume(ctx, j.Note.Pool, j.Note.Volume))
}

// awaitFaster waits for another process that began the same base first. If there is none, the error is why this one could not begin.
func (m *Creator) awaitFaster(ctx context.Context, key string, j *journal, why error) error {
	other, err := open(ctx, j.host, j.Note.Pool, j.Note.Volume)
	switch {
	case err == nil && other.UUID != j.UUID:
		return m.awaitBase(ctx, key, other)
	case errors.Is(err, host.ErrNotFound) && errors.Is(why, host.ErrExists):
		return nil // the other creation has ended, with or without success
	case err != nil && !errors.Is(err, host.ErrNotFound):
		return err
	}
	return why
}

// awaitBase waits for the creation of a base by another process, and removes a partial one if that process has died.
func (m *Creator) awaitBase(ctx context.Context, key string, other *journal) error {
	if err := other.awaitCreator(ctx); err != nil {
		return err
	}
	return m.removeStale(ctx, key, other)
}
