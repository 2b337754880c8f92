package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/secret"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// planReserved is whether the binding is to have a reservation; null for storage that is no claim's, and open while it is
// not known whether it is one.
func (r *binding) planReserved(m model) types.Bool {
	if m.Source.IsUnknown() {
		return types.BoolUnknown()
	}
	source, ok := m.Source.Attributes()[claimSource]
	switch {
	case !ok || source.IsNull():
		return types.BoolNull()
	case source.IsUnknown() && r.backend.ReservesClaims:
		return types.BoolUnknown()
	}
	return types.BoolValue(r.backend.ReservesClaims)
}

// reservationOf is where the binding's record is, and what it says.
func (m model) reservationOf(ctx context.Context, own privateState, diags *diag.Diagnostics) (reservation.Ref, reservation.Binding, bool) {
	c := m.claim(ctx, diags)
	if c == nil {
		return reservation.Ref{}, reservation.Binding{}, false
	}
	return reservation.Ref(c.Ref()), reservation.Binding{
		ID: m.ID.ValueString(), Owner: own.Owner, Name: m.Name.ValueString(), Nonce: own.Nonce,
		Mode: volume.AccessMode(m.AccessMode.ValueString()), ClaimUID: own.ClaimUID, Remade: own.Remade, InState: own.inState,
	}, true
}

// reserve writes the record on the claim, if there is one and it is to be.
func (r *binding) reserve(ctx context.Context, m model, own privateState, v volume.Volume, diags *diag.Diagnostics) error {
	ref, wanted, ok := m.reservationOf(ctx, own, diags)
	if !ok || !m.Reserved.ValueBool() {
		return nil
	}
	client, err := r.backend.Cluster()
	if err != nil {
		return err
	}
	err = reservation.Reserve(ctx, client, ref, wanted, func(ctx context.Context) (reservation.HolderState, error) {
		return r.holderState(ctx, m, own, v)
	})
	return r.withCredentials(ctx, err, v)
}

// withCredentials adds to an error that tells how to release a claim by hand what else there is to remove: the credentials
// on hosts, which nobody may ever find again. An editor of the claim can have written any id into a record, so only a secret that
// a host shows to be of the same binding is named.
func (r *binding) withCredentials(ctx context.Context, err error, v volume.Volume) error {
	var held *reservation.HeldError
	if v.Images[0].Auth == nil || !errors.As(err, &held) {
		return err
	}
	var commands strings.Builder
	for _, key := range r.backend.Hosts.Keys() {
		for _, holder := range held.Holders {
			if r.hasCredentialsOf(ctx, key, holder.Record) {
				fmt.Fprintf(&commands, "\n  virsh secret-undefine %s  # on host %s", holder.ID, key)
			}
		}
	}
	if commands.Len() == 0 {
		return err
	}
	return fmt.Errorf("%w\n\nWhat is released by hand has left its credentials on hosts. If no configuration has that binding any more, run there:%s",
		err, commands.String())
}

// hasCredentialsOf is false for a host that can't be asked, too.
func (r *binding) hasCredentialsOf(ctx context.Context, key string, of reservation.Record) bool {
	h, err := r.backend.Hosts.Host(key)
	if err != nil || of.Unreadable != nil {
		return false
	}
	found, err := secret.Get(ctx, h, of.ID)
	return err == nil && found.Owner == of.Owner && found.Name == of.Name && slices.Contains(of.Nonces, found.Nonce)
}

// restore gives the record the mode again that the binding had before an update that failed, also when the update's time is
// over.
func (r *binding) restore(ctx context.Context, plan, state model, own privateState, v volume.Volume, diags *diag.Diagnostics) error {
	if plan.AccessMode.Equal(state.AccessMode) {
		return nil
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	if err := r.reserve(ctx, state, own, v, diags); err != nil {
		return fmt.Errorf("the reservation stays %s: %w", plan.AccessMode.ValueString(), err)
	}
	return nil
}

// release takes this binding's record off the claim: by reservation.Release or End. One that has vanished left a finalizer,
// perhaps; one that was never written is fine.
func (r *binding) release(ctx context.Context, m model, own privateState, how release, diags *diag.Diagnostics) error {
	ref, held, ok := m.reservationOf(ctx, own, diags)
	if !ok || !own.Reserved {
		return nil
	}
	client, err := r.backend.Cluster()
	if err != nil {
		return err
	}
	return how(ctx, client, ref, held.ID, held.Nonce, held.ClaimUID)
}

type release func(ctx context.Context, claims reservation.Claims, ref reservation.Ref, id, nonce, claimUID string) error

// holderState tells who uses the storage of a claim that another binding of the same owner and name has: nobody, after an
// apply that was interrupted; machines of the same owner, while this one replaces the other; or somebody else. The record
// does not say which hosts that binding has, so all are asked.
func (r *binding) holderState(ctx context.Context, m model, own privateState, v volume.Volume) (s reservation.HolderState, err error) {
	others, err := r.others(ctx, m, own)
	if err != nil {
		return s, err
	}
	uses, err := r.uses(ctx, v.Images[0], r.backend.Hosts.Keys())
	if err != nil {
		return s, err
	}
	s.Use, s.Instances = reservation.Free, map[string][]string{}
	for _, u := range uses {
		isForeign := u.Mark.Phase == ""
		if !isForeign && own.isIndependent(u, m.ID.ValueString(), others) {
			continue
		}
		name := fmt.Sprintf("domain %s on host %s", u.Domain, u.Host)
		s.Users = append(s.Users, name)
		if b := volume.ParseBinding(u.Binding); b.ID == m.ID.ValueString() && b.Instance != "" {
			s.Instances[b.Instance] = append(s.Instances[b.Instance], name)
		}
		switch {
		case isForeign || u.Mark.Owner != own.Owner:
			s.Use = reservation.Foreign
		case s.Use == reservation.Free:
			s.Use = reservation.Ours
		}
	}
	return s, nil
}

// uses are those of an image on some hosts, all of which must answer.
func (r *binding) uses(ctx context.Context, i volume.Image, keys []string) (all []guard.Use, err error) {
	for _, key := range keys {
		h, err := r.backend.Hosts.Host(key)
		if err != nil {
			return nil, err
		}
		uses, err := guard.Users(ctx, key, h, i)
		if err != nil {
			return nil, err
		}
		all = append(all, uses...)
	}
	return all, nil
}

// others are whose bindings hold the same claim.
type others struct {
	// known is false where nobody keeps a record of that.
	known bool
	// owners are those of the other bindings of the claim.
	owners []string
	// isSuperseded tells that another binding of the same owner and name came after this one, and has its place.
	isReplaced bool
	// instances are those of the bindings of the same owner and name.
	instances []string
}

// others looks at the claim. A claim that is gone, or is another by now, has no records any more.
func (r *binding) others(ctx context.Context, m model, own privateState) (found others, err error) {
	var diags diag.Diagnostics
	ref, held, ok := m.reservationOf(ctx, own, &diags)
	if !ok || !own.Reserved {
		return found, nil
	}
	client, err := r.backend.Cluster()
	if err != nil {
		return found, err
	}
	records, err := reservation.Read(ctx, client, ref, held.ClaimUID)
	found.known = records != nil
	for _, record := range records {
		if record.ID != held.ID {
			found.owners = append(found.owners, record.Owner)
			continue
		}
		if record.Unreadable != nil {
			continue
		}
		found.isReplaced = record.Nonces[len(record.Nonces)-1] != held.Nonce
		for _, nonce := range record.Nonces {
			found.instances = append(found.instances, volume.InstanceOf(nonce))
		}
	}
	return found, err
}

// isIndependent tells whether a use of the storage is none of this binding's: it notes another one, it has other credentials, or
// its owner has another binding of it. Where nobody keeps a record the latter is not known, but expected of every other
// owner.
func (h privateState) isIndependent(u guard.Use, id string, others others) bool {
	if u.Saved && u.Image().Auth != nil && u.Image().Auth.SecretUUID == id {
		return false // its next start asks for the secret that it had when it was saved
	}
	if u.Binding != "" {
		return volume.ParseBinding(u.Binding).ID != id
	}
	if auth := u.Image().Auth; auth != nil {
		return auth.SecretUUID != id
	}
	switch {
	case u.Mark.Phase == "":
		return false
	case others.known:
		return slices.Contains(others.owners, u.Mark.Owner)
	}
	return u.Mark.Owner != h.Owner
}

// isOtherInstance tells whether the machine has the storage from another instance of this binding, which lives: it is on record, or
// nobody keeps one. Another state with the same owner has such a machine, and so has a replacement that was interrupted.
func (o others) isOtherInstance(u guard.Use, own string) bool {
	return volume.OtherInstance(u.Binding, own) &&
		(!o.known || slices.Contains(o.instances, volume.ParseBinding(u.Binding).Instance))
}

// refreshReservation looks whether the claim still carries the record. One that vanished is drift: some tools drop
// annotations that they do not know. So is one of another mode, of an update that was killed, and one that a claim does not
// have because it was restored: others could take it.
func (r *binding) refreshReservation(ctx context.Context, state *model, own privateState, diags *diag.Diagnostics) {
	ref, held, ok := state.reservationOf(ctx, own, diags)
	if !ok || !own.Reserved {
		return
	}
	client, err := r.backend.Lists()
	if err != nil {
		return // refreshVolume has said so
	}
	claim, err := client.Claim(ctx, ref.Namespace, ref.Name)
	if err != nil || claim.DeletionTimestamp != nil {
		return // refreshVolume has said so
	}
	if string(claim.UID) != held.ClaimUID {
		state.Reserved = types.BoolValue(claim.Status.Phase != corev1.ClaimBound) // one that is not bound can't be held yet
		return
	}
	mode := reservation.Held(claim, held.ID, held.Nonce)
	// One that came after it is its heir, or else what an interrupted replacement left, which the next update removes.
	state.Reserved = types.BoolValue(mode == held.Mode && reservation.Last(claim, held.ID, held.Nonce))
	switch {
	case !r.backend.ReservesClaims:
	case mode == held.Mode && state.Reserved.ValueBool():
	case mode == held.Mode:
		diags.AddAttributeWarning(sourcePath.AtName(claimSource), "Another instance of the binding holds the claim",
			fmt.Sprintf("The %s is held for the binding %s of this state, and for another instance of it that came later: a replacement was "+
				"interrupted, or another state has the same owner, as the copy of a configuration's folder has. An apply takes the other one "+
				"off the claim, unless machines use it.", ref, held.Name))
	case mode == "" && reservation.HeldByOther(claim, held.ID, held.Nonce):
		diags.AddAttributeWarning(sourcePath.AtName(claimSource), "Another state holds the claim",
			fmt.Sprintf("The %s is held for another instance of the binding %s, which is not in this state: another state has the same owner, "+
				"as the copy of a configuration's folder has. Use only one of the two: destroying the binding here leaves alone what the "+
				"other one has.", ref, held.Name))
	case mode != "":
		diags.AddAttributeWarning(sourcePath.AtName(claimSource), "The reservation is for another mode",
			fmt.Sprintf("The %s is reserved %s for the binding %s, which is %s: an update was interrupted. An apply puts it right.",
				ref, mode, held.Name, held.Mode))
	default:
		diags.AddAttributeWarning(sourcePath.AtName(claimSource), "The reservation has vanished",
			fmt.Sprintf("The %s no longer carries the reservation of the binding %s: %s. An apply puts it there again. Until then nothing "+
				"keeps others from taking the claim.", ref, held.Name, reservation.LastWriter(claim, held.ID)))
	}
}

// checkMode refuses another mode that machines which use the storage can't live with: exclusive while there are several, or
// any that a running one, which keeps the mode that it was started with, does not bear.
func (r *binding) checkMode(ctx context.Context, plan, state model, v volume.Volume) error {
	if plan.AccessMode.Equal(state.AccessMode) {
		return nil
	}
	uses, err := r.uses(ctx, v.Images[0], v.Images[0].Hosts)
	if err != nil {
		return err
	}
	mode, users := v.Images[0].AccessMode, map[[2]string]string{}
	for _, u := range uses {
		name := fmt.Sprintf("domain %s on host %s", u.Domain, u.Host)
		users[[2]string{u.Host, u.UUID}] = name
		if has := u.Image().AccessMode; mode != volume.WriteExclusive && u.Live && !has.CompatibleWith(mode) {
			return fmt.Errorf("%w: it can't become %s while %s runs with it %s, because a running machine keeps its mode. Stop that machine "+
				"(running = false) or take the disk away from it in an apply before", guard.ErrInUse, mode, name, has)
		}
	}
	if mode == volume.WriteExclusive && len(users) > 1 {
		return fmt.Errorf("%w: it can't become write-exclusive while more than one machine uses it (%s). Take it away from all but one first",
			guard.ErrInUse, strings.Join(slices.Sorted(maps.Values(users)), ", "))
	}
	return nil
}
