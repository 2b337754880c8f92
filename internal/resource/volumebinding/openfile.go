package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// checkOpenFile returns guard.ErrInUse for the file of a recreated claim while a domain runs with that path: the guest may have the former,
// deleted file open. Uses for which independent returns true don't count; nil means none.
func (r *binding) checkOpenFile(ctx context.Context, i volume.Image, keys []string, isIndependent func(guard.Use) (bool, error)) error {
	if i.Type != "file" {
		return nil
	}
	users, err := r.uses(ctx, i, keys)
	refused := []error{err}
	for _, u := range users {
		why := explainOpenFile(u, i)
		if why != nil && isIndependent != nil {
			spared, err := isIndependent(u)
			if err == nil && spared {
				continue
			}
			why = errors.Join(why, err)
		}
		refused = append(refused, why)
	}
	return errors.Join(refused...)
}

// hasOpen is content.HasOpen for the guest of a use. For a guest that is not running, or only reads the image, both are false.
func (r *binding) hasOpen(ctx context.Context, u guard.Use, i volume.Image) (open, proven bool, err error) {
	if !u.Live || u.Depth > 0 {
		return false, false, nil
	}
	h, err := r.Provider.Hosts.Host(u.Host)
	if err != nil {
		return false, false, err
	}
	if err := guard.CheckSoleWriter(ctx, u.Host, h, i, u.UUID); err != nil {
		return false, false, err
	}
	if open, proven, err = content.HasOpen(ctx, h, i); err != nil {
		err = fmt.Errorf("whether the guest of domain %s on host %s has %s open is not known: %w", u.Domain, u.Host, i.Name, err)
	}
	return open, proven, err
}

// checkExchanged returns guard.ErrInUse for a use whose guest writes to a file that was deleted or replaced under the image's path.
func (r *binding) checkExchanged(ctx context.Context, u guard.Use, i volume.Image) error {
	if i.Type != "file" || !u.Live || u.Depth > 0 || !u.Device.Writes() {
		return nil
	}
	open, _, err := r.hasOpen(ctx, u, i)
	if open || err != nil {
		return err
	}
	return fmt.Errorf("%w: domain %s on host %s writes to a file that had the name %s and was deleted or replaced, by hand or by a pod. "+
		"What the guest has written there is lost when it loses the disk or stops. To save it: %s. To go on without it, shut the domain "+
		"down first (running = false, or virsh shutdown %s)", guard.ErrInUse, u.Domain, u.Host, i.Name, guard.Rescue(u.Domain,
		u.Device.Target), u.Domain)
}

// checkReplaced is checkExchanged for machines that have the storage from the binding that a new one replaces (create_before_destroy). A
// host that does not answer is skipped, because its machines can't be changed either.
func (r *binding) checkReplaced(ctx context.Context, i volume.Image) (refused error) {
	if i.Type != "file" {
		return nil
	}
	for _, key := range i.Hosts {
		users, err := r.uses(ctx, i, []string{key})
		if err != nil {
			continue
		}
		for _, u := range users {
			if volume.ParseBinding(u.Binding).ID == volume.ParseBinding(i.Binding).ID {
				refused = errors.Join(refused, r.checkExchanged(ctx, u, i))
			}
		}
	}
	return refused
}

// explainOpenFile is the error of a use of a recreated claim's file; nil for a use that only reads the file, and for a domain that is off.
func explainOpenFile(u guard.Use, i volume.Image) error {
	if i.Type != "file" || !u.Live && !u.Saved || u.Depth == 0 && !u.Device.Writes() {
		return nil
	}
	if u.Saved && !u.Live && u.Depth == 0 {
		return fmt.Errorf("%w: the claim was made again while domain %s on host %s is saved with its memory, and has %s, which may be "+
			"another file by now: its next start would go on with that memory over it. To give up what its memory had: virsh "+
			"managedsave-remove %s",
			guard.ErrInUse, u.Domain, u.Host, i.Name, u.Domain)
	}
	is := fmt.Sprintf("the claim was made again while domain %s, which runs on host %s or is saved with its memory, has %s. Its guest "+
		"may have the former file open, which is gone as soon as it stops", u.Domain, u.Host, i.Name)
	if u.Depth > 0 {
		return fmt.Errorf("%w: %s. Its disk %s is an overlay of that file, and is worth nothing over another one: save what is needed, "+
			"and destroy that overlay and its machine first", guard.ErrInUse, is, u.Device.Key)
	}
	return fmt.Errorf("%w: %s. To save what that has: %s. To go on with the file of the new claim, shut the domain down (virsh shutdown "+
		"%s) and apply again",
		guard.ErrInUse, is, guard.Rescue(u.Domain, u.Device.Target), u.Domain)
}

// checkOverlays returns guard.ErrInUse for the file of a recreated claim while overlays of the former file exist, with a machine, running
// or not, or without: they would read the clusters that they lack from other content.
func (r *binding) checkOverlays(ctx context.Context, i volume.Image, keys []string) error {
	var over []string
	for _, key := range keys {
		names, err := r.overlaysOn(ctx, i, key)
		if err != nil {
			return err
		}
		over = append(over, names...)
	}
	if len(over) == 0 {
		return nil
	}
	return fmt.Errorf("%w: the claim was made again, so that %s may be another file than before, and these are overlays of it: %s. Over "+
		"another file they are worth nothing: destroy them first, and their machines. If it is still the file that they were made over: "+
		"terraform apply -replace=<address of this resource>", guard.ErrInUse, i.Name, strings.Join(over, ", "))
}

func (r *binding) overlaysOn(ctx context.Context, i volume.Image, key string) (over []string, err error) {
	h, err := r.Provider.Hosts.Host(key)
	var domains []domainxml.Definitions
	if err == nil {
		domains, err = guard.List(ctx, h)
	}
	if err == nil {
		err = guard.External(key, domains, i) // an external user is reported first: destroying that overlay would be bad advice
	}
	if err != nil {
		return nil, err
	}
	users, err := guard.UsersAmong(ctx, key, h, domains, i)
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		if u.Depth > 0 {
			over = append(over, fmt.Sprintf("disk %s of domain %s on host %s", u.Device.Key, u.Domain, key))
		}
	}
	if i.Type == "network" {
		return over, nil // overlays of network images are not searched for in headers
	}
	names, err := content.OverlaysOf(ctx, h, i.Name)
	for _, name := range names {
		over = append(over, fmt.Sprintf("volume %s on host %s", name, key))
	}
	return over, err
}

// checkLeft is checkExchanged and explainOpenFile for a use that is about to end, because the binding is destroyed or leaves the host. It
// is nil while the claim is the one that was bound, or is gone for good. The cluster is queried only if a guest may lose data.
func (r *binding) checkLeft(ctx context.Context, m model, own privateState, u guard.Use, i volume.Image) error {
	if err := r.checkExchanged(ctx, u, i); err != nil {
		return err
	}
	var diags diag.Diagnostics
	refused, c := explainOpenFile(u, i), m.claim(ctx, &diags)
	if refused == nil || c == nil || own.ClaimUID == "" {
		return nil
	}
	if own.Remade {
		return refused
	}
	client, err := r.Provider.Cluster()
	if err != nil {
		return err
	}
	now, err := client.Claim(ctx, c.Ref().Namespace, c.Ref().Name)
	if apierrors.IsNotFound(err) || err == nil && string(now.UID) == own.ClaimUID {
		return nil
	}
	if err != nil {
		return fmt.Errorf("whether the %s was made again while domain %s on host %s has its file is not known: %w", c.Ref(), u.Domain,
			u.Host, err)
	}
	if pv, err := client.Volume(ctx, now.Spec.VolumeName); err == nil && string(pv.UID) == own.VolumeUID {
		return nil
	}
	return refused
}
