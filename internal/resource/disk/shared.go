package disk

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	tfpath "github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// hostsName is the attribute of the hosts that may open the disk's file.
const hostsName = "hosts"

const (
	// seenTime is how long a host may take to see the file: NFS clients keep what a folder has for up to a minute (acdirmax).
	seenTime = 70 * time.Second
	// seenPause is the pause between two looks.
	seenPause = time.Second
)

// errNotShared is the error of hosts whose storage pools are not known to be the same folder.
var errNotShared = errors.New("the folder is not shared")

// errNotSeen is errNotShared for a host that does not see the file, or not yet.
var errNotSeen = fmt.Errorf("%w", errNotShared)

// at is a host that may open the disk's file, and the storage pool that has the file there; empty if none has.
type at struct {
	*host.Host
	pool    string
	domains []domainxml.Definitions
}

// isShared reports whether several hosts may open the disk, as far as they are known.
func (m model) isShared() bool { return len(m.hostKeys()) > 1 }

// hostsKnown reports whether all hosts of the disk are known.
func (m model) hostsKnown() bool {
	return !m.Host.IsUnknown() && !m.Hosts.IsUnknown() && !slices.ContainsFunc(m.Hosts.Elements(), attr.Value.IsUnknown)
}

// hostKeys are the known keys of the hosts that may open the disk, sorted.
func (m model) hostKeys() []string {
	if m.Hosts.IsNull() || m.Hosts.IsUnknown() {
		return []string{m.Host.ValueString()}
	}
	var keys []string
	for _, e := range m.Hosts.Elements() {
		if key := e.(types.String); !key.IsUnknown() {
			keys = append(keys, key.ValueString())
		}
	}
	slices.Sort(keys)
	return keys
}

// moves reports whether only another host manages the disk: both may open its file.
func (m model) moves(state model) bool {
	was, is := state.Host.ValueString(), m.Host.ValueString()
	return m.hostsKnown() && was != is && slices.Contains(m.hostKeys(), was) && slices.Contains(state.hostKeys(), is)
}

// checkHosts refuses hosts without the disk's own, and disks whose content or identity other hosts would not know.
func (m model) checkHosts(diags *diag.Diagnostics) {
	if !m.hostsKnown() || m.Hosts.IsNull() {
		return
	}
	at := tfpath.Root(hostsName)
	if !slices.Contains(m.hostKeys(), m.Host.ValueString()) {
		diags.AddAttributeError(at, "The disk's own host is missing", fmt.Sprintf(
			"hosts are all hosts that may open the disk's file. Add %q, which is its host.", m.Host.ValueString()))
	}
	if !m.isShared() {
		return
	}
	if m.isOverShared() {
		diags.AddAttributeError(at, "Its lower images are of one host", "A disk of a container image is over images that the disks of "+
			"one host share. Leave hosts out, or clone it into a disk with hosts (copy_mode = \"clone\").")
	}
	if m.Format.ValueString() == "raw" || m.isComposed() {
		diags.AddAttributeError(at, "A raw disk is of one host", "A raw file has no room for the disk's identity, by which other hosts "+
			"know it. Leave hosts out, or use a qcow2 disk.")
	}
}

// planHosts refuses hosts that the provider is not configured with, or whose storage pools are known to be other folders. Apply checks
// again.
func (r *disk) planHosts(ctx context.Context, m, state model, diags *diag.Diagnostics) {
	m.checkHosts(diags)
	isSame := m.Host.Equal(state.Host) && m.Hosts.Equal(state.Hosts) && m.UsageType.Equal(state.UsageType)
	if !m.isShared() || !m.hostsKnown() || isSame || diags.HasError() || !r.Provider.Ready() || r.Provider.IsApplying() {
		return
	}
	for _, key := range m.hostKeys() {
		if _, err := r.Provider.Hosts.Host(key); err != nil {
			diags.AddAttributeError(tfpath.Root(hostsName).AtSetValue(types.StringValue(key)), "Unknown host", err.Error())
		} else if err := r.Provider.UsageTypes(key).Check(ctx, m.UsageType.ValueString()); !m.UsageType.IsUnknown() && err != nil {
			diags.AddAttributeError(tfpath.Root(hostsName), "Unknown usage type", err.Error())
		}
	}
	if diags.HasError() || m.UsageType.IsUnknown() {
		return
	}
	if _, err := r.sharedPools(ctx, m); errors.Is(err, errNotShared) { // other errors may be mended by the apply
		addHostsError(diags, m, err)
	}
}

func addHostsError(diags *diag.Diagnostics, m model, err error) {
	diags.AddAttributeError(tfpath.Root(hostsName), "Not a disk of all these hosts",
		host.Describe("Disk "+m.label(), m.Host.ValueString(), err))
}

// sharedPools are the hosts of a disk by their keys, with the pool of its usage type on each. All of them are the same folder, by its path.
func (r *disk) sharedPools(ctx context.Context, m model) (map[string]at, error) {
	all, folders := map[string]at{}, map[string]string{}
	for _, key := range m.hostKeys() {
		h, err := r.Provider.Hosts.Host(key)
		if err != nil {
			return nil, err
		}
		pool, err := r.Provider.UsageTypes(key).Existing(ctx, h, m.UsageType.ValueString())
		if err != nil {
			return nil, fmt.Errorf("its storage pool on host %s: %w", key, err)
		}
		is, err := h.Pool(ctx, pool)
		if err != nil {
			return nil, fmt.Errorf("host %s: %w", key, err)
		}
		if !slices.Contains([]string{"dir", "fs", "netfs"}, is.Type) {
			return nil, fmt.Errorf("%w: storage pool %s of host %s is of the type %s, and not a folder", errNotShared, pool, key, is.Type)
		}
		all[key], folders[key] = at{Host: h, pool: pool}, path.Clean(is.Path)
	}
	own := folders[m.Host.ValueString()]
	for _, key := range m.hostKeys() {
		if folders[key] != own {
			return nil, fmt.Errorf("%w: storage pool %s of host %s is %s, and on host %s it is %s. Mount a shared filesystem at the same "+
				"path, or leave host %[2]s out of hosts", errNotShared, all[key].pool, key, folders[key], m.Host.ValueString(), own)
		}
	}
	return all, nil
}

// share checks the hosts of a disk that is about to be made, and has its creation wait until all of them see the file.
func (r *disk) share(ctx context.Context, m model, spec *content.Spec) error {
	if !m.isShared() {
		return nil
	}
	all, err := r.sharedPools(ctx, m)
	if err != nil {
		return err
	}
	own := all[m.Host.ValueString()]
	delete(all, own.Key)
	for _, there := range all {
		if err := there.checkFree(ctx, own, spec.Name); err != nil {
			return err
		}
	}
	spec.Format = "qcow2" // what is found to be raw is refused
	spec.Confirm = func(ctx context.Context, v host.StorageVolume, generation string) error {
		for _, there := range all {
			if err := there.awaitFile(ctx, v.Name, m.top(v, generation)); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// checkFree refuses a name that a file of this host only has: the folder is another one there.
func (a at) checkFree(ctx context.Context, own at, name string) error {
	if name == "" { // it is generated
		return nil
	}
	has, err := a.HasVolume(ctx, a.pool, name)
	if err != nil || !has {
		return err
	}
	if has, err = own.HasVolume(ctx, own.pool, name); err != nil || has { // others say whose it is
		return err
	}
	return fmt.Errorf("%w: host %s has a volume %s in storage pool %s, and host %s does not", errNotShared, a.Key, name, a.pool, own.Key)
}

// awaitFile returns when the host sees the disk's file, which is known by the identity in its header.
func (a at) awaitFile(ctx context.Context, name string, top volume.Image) error {
	until, cancel := context.WithTimeout(ctx, seenTime)
	defer cancel()
	for {
		err := a.hasFile(ctx, name, top)
		if err == nil || !errors.Is(err, errNotSeen) {
			return err
		}
		select {
		case <-time.After(seenPause):
		case <-until.Done():
			return err
		}
	}
}

func (a at) hasFile(ctx context.Context, name string, top volume.Image) error {
	has, err := a.HasVolume(ctx, a.pool, name) // it has libvirt read the folder
	if err == nil && !has {
		return fmt.Errorf("%w: %s is not in storage pool %s of host %s. Mount the same filesystem there, or leave the host out of hosts",
			errNotSeen, top.Name, a.pool, a.Key)
	}
	if err != nil {
		return err
	}
	v, err := a.Volume(ctx, a.pool, name)
	if err != nil {
		return err
	}
	seen, err := content.See(ctx, a, v, top.Format)
	if err == nil && (v.Path != top.Name || !seen.ProvesItself(top)) {
		err = fmt.Errorf("%w: %s on host %s is another file, or has no identity in its header. An imported disk gets that when a machine "+
			"on its own host starts with it", errNotShared, v.Path, a.Key)
	}
	return err
}

// everywhere are the hosts that may open the file of a disk, its own one first, with their domains.
func (r *disk) everywhere(ctx context.Context, h *host.Host, m model, top volume.Image) ([]at, error) {
	all := []at{{Host: h, pool: m.Pool.ValueString()}}
	for _, key := range top.Hosts {
		if key == h.Key {
			continue
		}
		there, err := r.Provider.Hosts.Host(key)
		pool := ""
		if err == nil {
			pool, err = there.PoolOfTarget(ctx, path.Dir(top.Name))
		}
		if err != nil && !errors.Is(err, host.ErrNotFound) {
			return nil, fmt.Errorf("whether machines on host %s have it is not known: %w. If that host is gone for good, remove it from "+
				"the provider's hosts and from hosts of the disk", key, err)
		}
		all = append(all, at{Host: there, pool: pool})
	}
	for n := range all {
		var err error
		if all[n].domains, err = guard.List(ctx, all[n]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// usersOn are the uses of an image on several hosts.
func usersOn(ctx context.Context, all []at, image volume.Image) (users []guard.Use, err error) {
	for _, on := range all {
		here, err := guard.UsersAmong(ctx, on.Key, on, on.domains, image)
		if err != nil {
			return nil, err
		}
		users = append(users, here...)
	}
	return users, nil
}

// hostOf is the host of a use.
func hostOf(all []at, u guard.Use) at {
	return all[slices.IndexFunc(all, func(a at) bool { return a.Key == u.Host })]
}

// updateHosts proves that hosts which are added, and one that is to manage the disk, see its file, and that no machine on a removed host
// has it. It changes nothing on hosts but the records of removed ones. The plan gets the pool of its host.
func (r *disk) updateHosts(ctx context.Context, plan *model, state model, diags *diag.Diagnostics) error {
	own, known := state.made(ctx, diags)
	if plan.checkHosts(diags); !known || diags.HasError() {
		return nil
	}
	if err := r.addHosts(ctx, plan, state, own.Images[0]); err != nil {
		return err
	}
	return r.removeHosts(ctx, *plan, own.Images, diags)
}

func (r *disk) addHosts(ctx context.Context, plan *model, state model, top volume.Image) error {
	moves := plan.moves(state)
	added := slices.DeleteFunc(plan.hostKeys(), func(key string) bool {
		return slices.Contains(top.Hosts, key) && (!moves || key != plan.Host.ValueString())
	})
	if len(added) == 0 {
		return nil
	}
	all, err := r.sharedPools(ctx, *plan)
	if err != nil {
		return err
	}
	if moves {
		plan.Pool = types.StringValue(all[plan.Host.ValueString()].pool)
		plan.ID = types.StringValue(plan.Host.ValueString() + "/" + plan.Pool.ValueString() + "/" + state.Name.ValueString())
	}
	over, err := content.OverlaysOf(ctx, all[plan.Host.ValueString()], top.Name)
	if err != nil {
		return err
	}
	for _, key := range added {
		if err := all[key].awaitFile(ctx, state.Name.ValueString(), top); err != nil {
			return err
		}
		if err := all[key].seesOverlays(ctx, top.Name, over); err != nil {
			return err
		}
	}
	return nil
}

// seesOverlays refuses a host that does not see all overlays of the disk: a machine there would write under them.
func (a at) seesOverlays(ctx context.Context, file string, known []string) error {
	if len(known) == 0 {
		return nil
	}
	seen, err := content.OverlaysOf(ctx, a, file)
	if err == nil && len(seen) < len(known) {
		err = fmt.Errorf("%w: volumes are overlays of the disk (%s), and host %s does not see all of them, so that its machines could "+
			"write under them", errNotShared, strings.Join(known, ", "), a.Key)
	}
	return err
}

func (r *disk) removeHosts(ctx context.Context, plan model, chain []volume.Image, diags *diag.Diagnostics) error {
	top := chain[0]
	for _, key := range top.Hosts {
		if slices.Contains(plan.hostKeys(), key) {
			continue
		}
		h, err := r.Provider.Hosts.Host(key)
		if err != nil {
			diags.AddAttributeWarning(tfpath.Root(hostsName), "A host is given up", fmt.Sprintf("The provider no longer has host %s. "+
				"Whether a machine there has disk %s is not known.", key, plan.label()))
			continue
		}
		users, err := guard.Users(ctx, key, h, top)
		if err != nil {
			return fmt.Errorf("whether a machine on host %s has it is not known: %w", key, err)
		}
		if len(users) > 0 {
			return fmt.Errorf("%w: domain %s on host %s has it. Take it away from that machine, and then the host from hosts",
				guard.ErrInUse, users[0].Domain, key)
		}
		if err := content.ForgetMasterRecord(ctx, h, chain); err != nil {
			return err
		}
	}
	return nil
}
