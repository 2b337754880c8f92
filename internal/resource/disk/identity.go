package disk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// find returns the disk's volume and its identity, or host.ErrNotFound when it is gone, also if another volume has its name. An
// unrecognized volume stays in the state, since it may be the right one; it is neither changed nor deleted.
func (r *disk) find(ctx context.Context, h *host.Host, m model, diags *diag.Diagnostics) (v host.StorageVolume, id string, err error) {
	own, known := m.made(ctx, diags)
	v, err = h.Volume(ctx, m.Pool.ValueString(), m.Name.ValueString())
	if known {
		id = own.Images[0].Generation
		err = warnOfHead(m, own.Images[0].Format, err, diags)
	}
	if err != nil || !known { // it is being imported
		return v, id, err
	}
	is, err := content.See(ctx, h, v, own.Images[0].Format)
	if err == nil {
		err = content.Recognize(is, own.Images[0].Format, id)
	}
	if errors.Is(err, content.ErrUnrecognized) || errors.Is(err, content.ErrOtherLength) {
		diags.AddWarning(fmt.Sprintf("Disk %s can't be recognized", m.ID.ValueString()),
			fmt.Sprintf("On host %s: %s", m.Host.ValueString(), err))
		return v, id, nil
	}
	if err == nil {
		err = warnOfBacking(m, own, is, diags)
	}
	return v, id, err
}

// ofMissingPool adds the remedy to the error of a disk whose pool is missing.
func ofMissingPool(err error) error {
	if !errors.Is(err, host.ErrNoPool) {
		return err
	}
	return fmt.Errorf("%w. Define and start it again (virsh pool-define, virsh pool-start). If it has another name now, remove the disk "+
		"from the state (terraform state rm) and import it from there", err)
}

// warnOfHead warns in every plan that libvirt can't read the header that a guest has written to its raw disk.
func warnOfHead(m model, format string, err error, diags *diag.Diagnostics) error {
	if err != nil && content.Described(err, format) == nil {
		diags.AddWarning(fmt.Sprintf("Disk %s could not be read", m.ID.ValueString()),
			fmt.Sprintf("Until then its size is not compared: %s", err))
		return nil
	}
	return err
}

// warnOfBacking warns in every plan that the disk was pulled from its master, rebased, or got another header outside of Terraform.
func warnOfBacking(m model, own volume.Volume, is *content.Seen, diags *diag.Diagnostics) error {
	err := content.CheckBacking(own.Images, []*content.Seen{is})
	var what string
	switch {
	case errors.Is(err, content.ErrRebased):
		what = "is no overlay of its master any more"
	case errors.Is(err, content.ErrNamesBacking) && m.isImported():
		return nil // its chain is not in the state yet: the plan compares it with the configuration
	case errors.Is(err, content.ErrNamesBacking):
		what = "names a backing file that it was not given"
	case errors.Is(err, content.ErrDataFile):
		what = "names a data file that it was not given"
	default:
		return err
	}
	diags.AddWarning(fmt.Sprintf("Disk %s %s", m.ID.ValueString(), what), fmt.Sprintf(
		"On host %s, %s. Until then no machine that has it can be updated or started, and it can't grow.", m.Host.ValueString(), err))
	return nil
}

// warnOfMasters warns in every plan of masters over which no machine would be started.
func (r *disk) warnOfMasters(ctx context.Context, m model, diags *diag.Diagnostics) {
	own, _ := m.made(ctx, diags)
	h, err := r.Provider.Hosts.Host(m.Host.ValueString())
	if len(own.Images) < 2 || err != nil {
		return
	}
	err = content.CheckMasters(ctx, r.Provider.Files.On(h), own.Images)
	if errors.Is(err, content.ErrMasterChanged) {
		diags.AddWarning(fmt.Sprintf("The master of disk %s has changed", m.ID.ValueString()), fmt.Sprintf(
			"Until it is as it was, no machine is started with the disk. On host %s, %s. An apply that stops such a machine discards "+
				"what only its QEMU has.", h.Key, err))
	} else if err != nil {
		tflog.Warn(ctx, "Whether the masters of a disk have changed is not known",
			map[string]any{"disk": m.ID.ValueString(), "error": err.Error()})
	}
}

// gone warns of a disk that is gone if another volume has its name, or if a machine still writes to the deleted file. The ledger's entry
// and the shared image stay: the volume may come back, as when its pool is mounted again.
func (r *disk) gone(ctx context.Context, h *host.Host, m model, why error, diags *diag.Diagnostics) error {
	if errors.Is(why, content.ErrReplaced) {
		diags.AddWarning(fmt.Sprintf("Disk %s is gone", m.ID.ValueString()), fmt.Sprintf(
			"On host %s: %s. That volume was not made by this state, and is left alone.", m.Host.ValueString(), why))
	}
	if _, known := m.made(ctx, diags); !known {
		return nil
	}
	return r.warnOfUsers(ctx, h, m, true, diags)
}

// warnOfOverlays reports whether volumes are overlays of a disk that is gone: then it stays in the state. A blank disk in its place would
// destroy all of them, while they are intact once the file is back, as when its filesystem is mounted again.
func (r *disk) warnOfOverlays(ctx context.Context, h *host.Host, m model, why error, diags *diag.Diagnostics) bool {
	own, known := m.made(ctx, diags)
	if !known {
		return false
	}
	names, err := content.OverlaysOf(ctx, h, own.Images[0].Name)
	if err != nil {
		diags.AddWarning(fmt.Sprintf("Disk %s is gone", m.ID.ValueString()), fmt.Sprintf(
			"On host %s: whether volumes are overlays of it is not known: %s. Until it is known that there are none, the disk stays in "+
				"the state and is not created again.", m.Host.ValueString(), err))
		return true
	}
	if len(names) == 0 {
		return false
	}
	is := fmt.Sprintf("the file of disk %s is not in storage pool %s any more", m.Name.ValueString(), m.Pool.ValueString())
	if errors.Is(why, content.ErrReplaced) {
		is = why.Error()
	}
	diags.AddWarning(fmt.Sprintf("Disk %s is gone, and is a master", m.ID.ValueString()), fmt.Sprintf(
		"On host %s, %s, and these are overlays of it: %s. It is not created again: over another content the overlays would be worth "+
			"nothing. Restore the file, for example by mounting the filesystem of the pool. To do without it, destroy the overlays first.",
		m.Host.ValueString(), is, strings.Join(names, ", ")))
	return true
}

// warnOfUsers warns of each machine that runs with a file of the disk which the pool no longer has: while the machine runs, the data of its
// guest can be saved. If the pool has another folder now, the file was not deleted.
func (r *disk) warnOfUsers(ctx context.Context, h *host.Host, m model, recreated bool, diags *diag.Diagnostics) error {
	own, _ := m.made(ctx, diags)
	users, err := guard.Users(ctx, m.Host.ValueString(), h, own.Images[0])
	if err != nil {
		return err
	}
	users = slices.DeleteFunc(users, func(u guard.Use) bool { return !u.Live || volume.IsRemade(u.Image(), own.Images[0]) })
	if len(users) == 0 {
		return nil
	}
	pool, err := h.Pool(ctx, m.Pool.ValueString())
	if err != nil {
		return err
	}
	for _, u := range users {
		diags.AddWarning(openElsewhere(u, m, pool, recreated))
	}
	return nil
}

// openElsewhere describes a domain that has the file of a disk open which its storage pool does not have any more. recreated tells whether
// an apply creates the disk again.
func openElsewhere(u guard.Use, m model, pool host.Pool, recreated bool) (title, text string) {
	id, name, file := m.ID.ValueString(), m.Pool.ValueString(), u.Image().Name
	is := fmt.Sprintf("The volume of disk %s is gone from storage pool %s, but domain %s on host %s runs, and ", id, name, u.Domain, u.Host)
	rescue := guard.Rescue(u.Domain, u.Device.Target)
	keeps := ""
	if recreated {
		keeps = " An apply creates the disk again, and does not take the file from the running guest, unless it stops the machine or may " +
			"(running = false, allow_restart = true)."
	}
	switch {
	case pool.Path != "" && filepath.Clean(pool.Path) != filepath.Dir(filepath.Clean(file)):
		return fmt.Sprintf("Domain %s runs with a file of disk %s that its pool does not have", u.Domain, id), fmt.Sprintf(
			"%[1]sreads and writes %[2]s as its disk %[3]s. The storage pool %[4]s has another folder now, which is %[5]s, and no such "+
				"file there. Give the pool its former folder, or shut the machine down, move the file to the new one, and start it.%[6]s",
			is, file, u.Device.Key, name, pool.Path, keeps)
	case !recreated:
		return fmt.Sprintf("Domain %s runs with a file of disk %s that its pool does not have", u.Domain, id), fmt.Sprintf(
			"%shas it open as its disk %s. Mount its filesystem again before the machine is stopped. If the file was deleted, save what "+
				"was written to it: %s.", is, u.Device.Key, rescue)
	case u.Depth == 0 && !u.Device.Writes():
		return fmt.Sprintf("Domain %s runs with the deleted disk %s", u.Domain, id), fmt.Sprintf(
			"%sreads the deleted file as its disk %s and does not write to it. An apply creates the disk again as configured, and the "+
				"guest gets the new one: other content of the deleted file is lost then.", is, u.Device.Key)
	}
	return fmt.Sprintf("Domain %s runs with the deleted disk %s", u.Domain, id), fmt.Sprintf(
		"%sreads and writes the deleted file as its disk %s until it is stopped. Then all that was written to it is lost. To save it "+
			"first: %s.%s", is, u.Device.Key, rescue, keeps)
}
