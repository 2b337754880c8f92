package content

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// checkLeft refuses to adopt a finished volume that a domain uses, unless that domain is itself being created. A machine is created after
// its disks are in the state, so another state contains this volume. A domain that records another identity for the path used an
// earlier volume of that name, and does not count.
func (j *journal) checkLeft(ctx context.Context, v host.StorageVolume) error {
	domains, err := j.host.Domains(ctx)
	if err != nil {
		return err
	}
	user := ""
	err = eachUse(domains, v, func(d host.Domain, metadata domainxml.Metadata, i volume.Image) {
		isFormer := i.Generation != "" && !j.isIdentity(i.Generation)
		if metadata.Phase != domainxml.Creating && !isJournal(d.Name) && !isFormer {
			user = d.Name
		}
	})
	if err != nil || user == "" {
		return err
	}
	n := j.Note
	return fmt.Errorf("the volume %s in the storage pool %s is used by the domain %s: %w. It was made by the same owner %q and is in another state, "+
		"as after the copy of a configuration's folder (give the copy an owner, and its disks and machines names, of its own), or its state was "+
		"lost. To manage it from here, run: terraform import <address of this resource> <host>/%s/%s",
		n.Volume, n.Pool, user, ErrForeign, n.Owner, n.Pool, n.Volume)
}

// isIdentity reports whether the journal's volume may have an identity.
func (j *journal) isIdentity(id string) bool {
	return slices.ContainsFunc([]string{j.Note.Generation, j.Note.Former}, func(own string) bool {
		return own != "" && volume.LastingGeneration(own) == volume.LastingGeneration(id)
	})
}

// recognize refuses a volume that is not the one of the journal. While renew replaces the identity, it may have none.
func (j *journal) recognize(ctx context.Context, v host.StorageVolume) error {
	id, err := Identity(ctx, j.host, v, v.Format)
	if err == nil && (j.isIdentity(id) || id == "" && j.Note.Former != "") {
		return nil
	}
	if err == nil {
		err = Recognize(ctx, j.host, v, v.Format, j.Note.Generation)
	}
	if err != nil {
		err = fmt.Errorf("%w (%w)", j.foreign("is finished, and is not the one that was made"), err)
	}
	return err
}

// renew replaces the identity of a volume that is adopted: another state of the same owner, as that of the copy of a configuration's folder, may
// have it under the former one, and must not use or delete it any more. A volume that has dependents, which know it by its identity, keeps it:
// they also keep it from being deleted.
func (j *journal) renew(ctx context.Context, v host.StorageVolume) error {
	id, err := Identity(ctx, j.host, v, v.Format)
	if err != nil {
		return err
	}
	if depends, err := j.hasDependents(ctx, v); err != nil || depends {
		j.Note.Generation = cmp.Or(id, j.Note.Generation)
		return err
	}
	j.Note.Former, j.Note.Generation = cmp.Or(id, j.Note.Former, j.Note.Generation), newGeneration()
	if err := j.write(ctx); err != nil {
		return err
	}
	was, _, err := recordOf(ctx, j.host, masterUsage(j.Note.Former))
	if err == nil && was != "" {
		err = addRecord(ctx, j.host, masterUsage(j.Note.Generation), was)
	}
	if err == nil {
		err = identify(ctx, j.host, asProbed(v), j.Note.Generation)
	}
	if err == nil {
		err = dropRecord(ctx, j.host, masterUsage(j.Note.Former))
	}
	return err
}

// hasDependents reports whether a domain has a finished volume, or another volume is an overlay or a copy of it.
func (j *journal) hasDependents(ctx context.Context, v host.StorageVolume) (bool, error) {
	domains, err := j.host.Domains(ctx)
	if err != nil {
		return false, err
	}
	found := false
	for _, d := range domains {
		if !isJournal(d.Name) || d.Stored == "" || d.UUID == j.UUID {
			continue
		}
		note, _, err := domainxml.ParseJournal(d.Stored)
		if err != nil {
			return false, fmt.Errorf("domain %s: %w", d.Name, err)
		}
		found = found || slices.ContainsFunc(note.Masters, j.isIdentity)
	}
	err = eachUse(domains, v, func(d host.Domain, _ domainxml.Metadata, _ volume.Image) { found = found || d.UUID != j.UUID })
	if found || err != nil {
		return found, err
	}
	above, err := overlays(ctx, j.host, newMasterFile(j.host, v.Path))
	return len(above) > 0, err
}
