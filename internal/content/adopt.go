package content

import (
	"context"
	"fmt"

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
		isFormer := i.Generation != "" && volume.LastingGeneration(i.Generation) != volume.LastingGeneration(j.Note.Generation)
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
