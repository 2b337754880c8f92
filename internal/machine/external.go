package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// errExternal is the error of a machine whose disks were changed, or are being changed, outside of Terraform.
var errExternal = errors.New("nothing was changed, because its disks were changed outside of Terraform, or are being changed")

// completeExternal adds what the host has about disks whose chain was changed outside of Terraform: the names of snapshots, and the chain
// below an overlay that was created while the domain was off, which its persistent definition lacks.
func (m Manager) completeExternal(ctx context.Context, uuid string, all map[string]domainxml.External) {
	if len(all) == 0 {
		return
	}
	snapshots, _ := m.host.Snapshots(ctx, uuid) // without them the overlay itself has a name
	for key, e := range all {
		if e.Depth < 0 && !e.Live && len(e.Chain) == 1 {
			m.completeChain(ctx, &e)
		}
		if len(e.Chain) > 0 {
			e.Snapshot = domainxml.SnapshotOf(snapshots, e.Chain[0].Name)
		}
		all[key] = e
	}
}

// completeChain follows the backing files in the headers of volumes below an overlay, as far as they are in the host's pools.
func (m Manager) completeChain(ctx context.Context, e *domainxml.External) {
	below := map[string]string{}
	overlays, err := m.host.Overlays(ctx)
	if err != nil {
		return // the previous chain stays untouched in any case
	}
	for _, v := range overlays {
		below[v.Path] = v.Backing
	}
	chain := slices.Clone(e.Chain)
	for next := below[chain[0].Name]; next != "" && len(chain) <= len(below); next = below[next] {
		chain = append(chain, volume.Image{Type: "file", Name: next})
		if next == e.Noted[0] {
			e.Chain, e.Depth, e.Base = chain, len(chain)-1, next
			return
		}
	}
}

// checkChains refuses to change a domain if want would revert a disk that was changed outside of Terraform, or while a block job runs. It
// is called before anything changes. The jobs of a QEMU that does not answer and is to be killed are ignored.
func (m Manager) checkChains(ctx context.Context, uuid string, at Observation, want domainxml.Machine, kills bool) error {
	is, err := at.chains(want)
	if err != nil {
		return err
	}
	m.completeExternal(ctx, uuid, is.External)
	err = m.addJobs(ctx, uuid, at.live, &is)
	if err != nil && !kills {
		return err
	}
	if err != nil {
		m.log.Warn(ctx, "Whether a block job runs is not known", map[string]any{"machine": is.Name, "error": err.Error()})
	}
	if err := refuseExternal(is, want); err != nil {
		return err
	}
	return m.checkBacking(ctx, at.live, want)
}

// checkEnd refuses to end a domain if that would lose changes made to a disk outside of Terraform, or while a block job runs. The jobs of a
// QEMU that does not answer are unknown, which doesn't block the end. A domain can be ended whose disks were only pulled from the masters
// in the headers of overlays, because nothing of those is elsewhere. was is the machine in state.
func (m Manager) checkEnd(ctx context.Context, uuid string, at Observation, was domainxml.Machine) error {
	is, err := at.chains(domainxml.Machine{})
	if err != nil {
		return err
	}
	maps.DeleteFunc(is.External, func(key string, e domainxml.External) bool { return IsForgotten(e, was.Disks[key].Volume) })
	m.completeExternal(ctx, uuid, is.External)
	if err := m.addJobs(ctx, uuid, at.live, &is); err != nil {
		m.log.Warn(ctx, "Whether a block job runs is not known", map[string]any{"machine": is.Name, "error": err.Error()})
	}
	return refuseExternal(is, domainxml.Machine{})
}

// chains is the persistent definition with the disks that were changed outside of Terraform.
func (at Observation) chains(want domainxml.Machine) (is domainxml.Machine, err error) {
	if is, err = at.stored.Machine(); err != nil {
		return is, err
	}
	if is.External, err = domainxml.Externals(at.stored, at.live); err != nil {
		return is, err
	}
	is.AddOverlaid(at.stored, want)
	if at.live != nil {
		is.AddOverlaid(at.live, want)
	}
	return is, nil
}

// addJobs adds the disks with a running block job that is not in the XML.
func (m Manager) addJobs(ctx context.Context, uuid string, live *domainxml.Domain, is *domainxml.Machine) error {
	if live == nil {
		return nil
	}
	for _, a := range live.Attached() {
		if _, known := is.External[a.Key]; known || a.Drive || a.IsFolder() || a.Target == "" || is.Disks[a.Key].Device == "" {
			continue
		}
		job, err := m.host.BlockJob(ctx, uuid, a.Target)
		if err != nil {
			return err
		}
		if job != "" {
			is.External = maps.Clone(is.External)
			if is.External == nil {
				is.External = map[string]domainxml.External{}
			}
			is.External[a.Key] = domainxml.External{Target: a.Target, Chain: a.Volume.Images, Job: job, Live: true}
		}
	}
	return nil
}

// refuseExternal returns errExternal if defining want would revert changes of disks.
func refuseExternal(is, want domainxml.Machine) error {
	var why []string
	for _, key := range is.Replaced(want) {
		why = append(why, guard.ExplainExternal(is.Name, key, is.External[key]))
	}
	if len(why) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s. The guide \"Backups and snapshots\" has more", errExternal, strings.Join(why, ".\n\n"))
}

// IsForgotten reports whether a domain with a pulled disk may be removed. The overlay's header shows the pull as well, unless its master
// was network storage: then only the domain shows that the volume in state is outdated.
func IsForgotten(e domainxml.External, v volume.Volume) bool {
	n := len(e.Chain)
	return e.Cut && (n >= len(v.Images) || !v.Images[n].IsRemote())
}
