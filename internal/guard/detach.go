package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guide"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ErrInUse is the error of an image that can't be used or removed, because a machine uses it.
var ErrInUse = errors.New("it is in use")

// Detach removes the devices of an image that is about to be deleted from the machines of some owners (the present one, and the one that it
// was made under), because Terraform destroys what a machine no longer names before it updates the machine. A device that can be unplugged
// is unplugged from the running guest, and removed from the stored definition; a drive stays, empty. If one can't be removed, nothing is
// changed on any host, and the error, which is ErrInUse, names the domain and the remedy. all are the uses; an error of judge refuses, too.
func Detach(ctx context.Context, hosts map[string]Host, image volume.Image, owners []string, all []Use, judge func(Use) error) error {
	var refused []error
	for _, u := range all {
		refused = append(refused, judge(u))
	}
	for _, u := range all {
		refused = append(refused, u.refusal(image, owners))
	}
	if err := errors.Join(refused...); err != nil {
		return err
	}
	// Media first: a guest may refuse to release one, and then nothing else must have changed.
	isMedium := func(u Use) bool { return u.Device.Drive }
	media := slices.DeleteFunc(slices.Clone(all), func(u Use) bool { return !isMedium(u) })
	for _, u := range slices.Concat(media, slices.DeleteFunc(all, isMedium)) {
		if err := u.end(ctx, hosts[u.Host]); err != nil {
			return err
		}
	}
	return nil
}

// refusal is the reason why a use can't be ended; nil when it can.
func (u Use) refusal(image volume.Image, owners []string) error {
	if e, is, err := u.external(); err != nil || is && !e.Cut && !u.isCopy {
		return cmp.Or(err, fmt.Errorf("%w: on host %s, %s", ErrInUse, u.Host, ExplainExternal(u.Domain, u.Device.Key, e)))
	}
	var why string
	switch {
	case u.isFilling() && u.Live:
		why = ": it is being filled. Wait until that is done"
	case u.isFilling():
		why = ": filling it was interrupted. Apply the configuration of its virtclaim_volume_content again, or give it up: virsh " +
			"undefine " +
			u.Domain + ", and delete the volume that its description names"
	case u.isCopy && u.Live:
		why = ": a clone of it is being made. Wait until that is done"
	case u.isCopy:
		why = ": a clone of it was begun and never finished. Apply the configuration of that clone again, or give it up: virsh undefine " +
			u.Domain + ", and delete the volume that its description names"
	case !u.isOwned(image, owners):
		why = fmt.Sprintf(", and that domain is not this configuration's. Detach it there (%s), or remove the domain", u.command())
	case u.Live && u.Device.IsFolder():
		why = ", which a running guest can't lose. Take it out of the machine's filesystems and stop the machine (running = false), or " +
			"restart it (allow_restart = true), first"
	case u.Stored && !u.isDisk():
		why = ", which is no disk of QEMU's, so that only you can take it away: virsh edit " + u.Domain
	case u.hasDeleted(image):
		why = fmt.Sprintf(": the deleted file that had this name before, and what the guest has written to it is nowhere else. To save "+
			"it: %s. To go on without it, stop the machine first (running = false, or virsh destroy %s)", Rescue(u.Domain,
			u.Device.Target), u.Domain)
	case u.Saved:
		why = ", which its managed save goes on with. Start it first (virsh start " + u.Domain + "), or give up what its memory had: " +
			"virsh managedsave-remove " + u.Domain
	case u.Live && u.Device.Boots:
		why = ", which it boots from, and runs. Stop the machine first (running = false), or replace both together: " +
			"terraform apply -replace=<the disk> -replace=<the machine>"
	case u.Live && !u.Device.Pluggable && !u.Device.Drive:
		why = ", which a running guest can't lose. Stop the machine first (running = false)"
	default:
		return nil
	}
	return fmt.Errorf("%w: domain %s on host %s has %s as its %s %s%s", ErrInUse, u.Domain, u.Host, image.Name, u.Device.Kind(),
		u.Device.Key, why)
}

// hasDeleted reports whether the guest writes to a deleted file whose name the image has now.
func (u Use) hasDeleted(image volume.Image) bool {
	return u.Live && u.Depth == 0 && u.Device.Writes() && volume.IsRemade(u.Image(), image)
}

// isOwned reports whether the domain is a machine of one of the owners. For a machine without an owner, the metadata of the device must
// name this image or its binding.
func (u Use) isOwned(image volume.Image, owners []string) bool {
	return u.Metadata.Phase != "" && slices.Contains(owners, u.Metadata.Owner) && (u.Metadata.Owner != "" || u.names(image))
}

// names reports whether the metadata of the device name this very image, or its binding.
func (u Use) names(image volume.Image) bool {
	return image.Generation != "" && u.Image().Generation == image.Generation ||
		image.Binding != "" && volume.ParseBinding(u.Binding).ID == volume.ParseBinding(image.Binding).ID
}

// command is the virsh command that removes the device. None does for a filesystem.
func (u Use) command() string {
	if u.Device.IsFolder() {
		return "virsh edit " + u.Domain
	}
	if u.Device.Drive {
		return fmt.Sprintf("virsh change-media %s %s --eject", u.Domain, u.Device.Target)
	}
	return fmt.Sprintf("virsh detach-disk %s %s --persistent", u.Domain, u.Device.Target)
}

// isDisk reports whether the stored definition has it as a disk or filesystem. A logical unit may also be passed through as a SCSI device.
func (u Use) isDisk() bool {
	return u.stored != nil && (u.Device.IsFolder() || u.stored.HasDisk(u.Device.Key))
}

// end unplugs the device from the running domain, then removes it from the stored definition.
func (u Use) end(ctx context.Context, h Host) error {
	if u.Live {
		if err := Unplug(ctx, h, u.UUID, u.live, u.Device.Key); err != nil {
			return fmt.Errorf("domain %s on host %s, disk %s: %w", u.Domain, u.Host, u.Device.Key, withWayOut(err))
		}
	}
	if !u.Stored {
		return nil
	}
	element := u.stored.Device
	if u.Device.IsFolder() {
		element = u.stored.FilesystemDevice
	} else if drive, ok, err := u.stored.Drive(u.Device.Key, volume.Volume{}); err != nil {
		return err
	} else if ok {
		return h.ChangeStoredMedium(ctx, u.UUID, drive)
	}
	device, ok, err := element(u.Device.Key)
	if err != nil || !ok {
		return err
	}
	return h.DetachStored(ctx, u.UUID, device)
}

// withWayOut adds to an error how to proceed if the guest does not acknowledge. That takes two applies, because Terraform destroys a
// disk that a machine no longer names before it updates the machine.
func withWayOut(err error) error {
	if !errors.Is(err, host.ErrDetachRefused) {
		return err
	}
	return fmt.Errorf("%w\n\nApply again when its guest does not use the disk. Or leave this resource in the configuration for now, and "+
		"take the disk off its machine with allow_restart = true. "+guide.See+"troubleshooting#disks-that-a-guest-keeps", err)
}

// Unplugger are the calls of a host that Unplug needs.
type Unplugger interface {
	Detach(ctx context.Context, uuid, deviceXML string, gone func(liveXML string) (bool, error)) error
	ChangeMedium(ctx context.Context, uuid, deviceXML string) error
}

// Unplug unplugs the device of that key from a running domain, and waits for the guest's acknowledgement. The medium
// of a drive is ejected. The stored definition is not changed.
func Unplug(ctx context.Context, h Unplugger, id string, live *domainxml.Domain, key string) error {
	drive, ok, err := live.Drive(key, volume.Volume{})
	if err != nil {
		return err
	}
	if ok {
		return h.ChangeMedium(ctx, id, drive)
	}
	device, ok, err := live.Device(key)
	if err != nil || !ok {
		return err
	}
	return h.Detach(ctx, id, device, func(live string) (bool, error) {
		now, err := domainxml.Read(live)
		return err == nil && !now.HasDisk(key), err
	})
}
