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
	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/secret"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// planReserved is the planned value of reserved; null for storage without a claim, and unknown while it is unknown whether there is one.
func (r *binding) planReserved(m model) types.Bool {
	if m.Source.IsUnknown() {
		return types.BoolUnknown()
	}
	all := m.Source.Attributes()
	source, ok := all[claimSource]
	switch {
	case all[dynamicSource] != nil && !all[dynamicSource].IsNull() && r.Provider.ReservesClaims:
		return types.BoolUnknown() // it may answer with a claim
	case !ok || source.IsNull():
		return types.BoolNull()
	case source.IsUnknown() && r.Provider.ReservesClaims:
		return types.BoolUnknown()
	}
	return types.BoolValue(r.Provider.ReservesClaims)
}

// reservationOf returns the binding's record and the claim that it is on.
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

// reserve writes the record on the claim, if the binding has a claim that is to be reserved.
func (r *binding) reserve(ctx context.Context, m model, own privateState, v volume.Volume, diags *diag.Diagnostics) error {
	ref, wanted, ok := m.reservationOf(ctx, own, diags)
	if !ok || !m.Reserved.ValueBool() {
		return nil
	}
	client, err := r.Provider.Cluster()
	if err != nil {
		return err
	}
	err = reservation.Reserve(ctx, client, ref, wanted, func(ctx context.Context) (reservation.HolderState, error) {
		return r.holderState(ctx, m, own, v)
	})
	return r.withCredentials(ctx, err, v)
}

// withCredentials extends an error with the command that releases a claim manually by the commands that remove the credentials from hosts,
// which would not be found again. An editor of the claim may have written any id into a record, so only secrets that the host shows to be
// of the same binding are named.
func (r *binding) withCredentials(ctx context.Context, err error, v volume.Volume) error {
	var held *reservation.HeldError
	if v.Images[0].Auth == nil || !errors.As(err, &held) {
		return err
	}
	var commands strings.Builder
	for _, key := range r.Provider.Hosts.Keys() {
		for _, holder := range held.Holders {
			if r.hasCredentialsOf(ctx, key, holder.Record) {
				fmt.Fprintf(&commands, "\n  virsh secret-undefine %s  # on host %s", holder.ID, key)
			}
		}
	}
	if commands.Len() == 0 {
		return err
	}
	return fmt.Errorf("%w\n\nWhat is released by hand has left its credentials on hosts. If no configuration has that binding any more, "+
		"run there:%s",
		err, commands.String())
}

// hasCredentialsOf reports whether a host has the credentials of a record. It is false for a host that does not answer, too.
func (r *binding) hasCredentialsOf(ctx context.Context, key string, of reservation.Record) bool {
	h, err := r.Provider.Hosts.Host(key)
	if err != nil || of.Unreadable != nil {
		return false
	}
	found, err := secret.Get(ctx, h, of.ID)
	return err == nil && found.Owner == of.Owner && found.Name == of.Name && slices.Contains(of.Nonces, found.Nonce)
}

// release removes this binding's record from the claim with how, which is reservation.Release or End. A record that has vanished may have
// left a finalizer; one that was never written is no error.
func (r *binding) release(ctx context.Context, m model, own privateState, how release, diags *diag.Diagnostics) error {
	ref, held, ok := m.reservationOf(ctx, own, diags)
	if !ok || !own.Reserved {
		return nil
	}
	client, err := r.Provider.Cluster()
	if err != nil {
		return err
	}
	return how(ctx, client, ref, held.ID, held.Nonce, held.ClaimUID)
}

type release func(ctx context.Context, claims reservation.Claims, ref reservation.Ref, id, nonce, claimUID string) error

// holderState reports the users of the storage of a claim that is reserved for another binding of the same owner and name: none after an
// interrupted apply; machines of the same owner while this binding replaces the other; or other machines. The record doesn't have the other
// binding's hosts, so that all hosts are searched.
func (r *binding) holderState(ctx context.Context, m model, own privateState, v volume.Volume) (s reservation.HolderState, err error) {
	others, err := r.others(ctx, m, own)
	if err != nil {
		return s, err
	}
	uses, err := r.uses(ctx, v.Images[0], r.Provider.Hosts.Keys())
	if err != nil {
		return s, err
	}
	s.Use, s.Instances = reservation.Free, map[string][]string{}
	for _, u := range uses {
		isForeign := u.Metadata.Phase == ""
		if !isForeign && own.isIndependent(u, m.ID.ValueString(), others) {
			continue
		}
		name := fmt.Sprintf("domain %s on host %s", u.Domain, u.Host)
		s.Users = append(s.Users, name)
		if b := volume.ParseBinding(u.Binding); b.ID == m.ID.ValueString() && b.Instance != "" {
			s.Instances[b.Instance] = append(s.Instances[b.Instance], name)
		}
		switch {
		case isForeign || u.Metadata.Owner != own.Owner:
			s.Use = reservation.Foreign
		case s.Use == reservation.Free:
			s.Use = reservation.Ours
		}
	}
	return s, nil
}

// uses are the uses of an image on some hosts, all of which must answer.
func (r *binding) uses(ctx context.Context, i volume.Image, keys []string) (all []guard.Use, err error) {
	for _, key := range keys {
		h, err := r.Provider.Hosts.Host(key)
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

// others describes the other bindings that hold the same claim.
type others struct {
	// known is false where there are no records.
	known bool
	// owners are the owners of the other bindings of the claim.
	owners []string
	// isReplaced is set if a later binding of the same owner and name has replaced this one.
	isReplaced bool
	// instances are the instances of the bindings of the same owner and name.
	instances []string
}

// others reads the records of the claim. A claim that is gone, or was recreated, has none.
func (r *binding) others(ctx context.Context, m model, own privateState) (found others, err error) {
	var diags diag.Diagnostics
	ref, held, ok := m.reservationOf(ctx, own, &diags)
	if !ok || !own.Reserved {
		return found, nil
	}
	client, err := r.Provider.Cluster()
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
		if errors.Is(record.Unreadable, newer.Err) { // before a machine is detached, or the secret removed
			return found, fmt.Errorf("the %s is held by %s", ref, record)
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

// isIndependent reports whether a use of the storage does not depend on this binding: it names another binding, has other credentials, or
// its owner has another binding of the claim. Without records the latter is not known, but assumed for every other owner.
func (h privateState) isIndependent(u guard.Use, id string, others others) bool {
	if u.Saved && u.Image().Auth != nil && u.Image().Auth.SecretUUID == id {
		return false // its next start needs the secret that it had when it was saved
	}
	if u.Binding != "" {
		return volume.ParseBinding(u.Binding).ID != id
	}
	if auth := u.Image().Auth; auth != nil {
		return auth.SecretUUID != id
	}
	switch {
	case u.Metadata.Phase == "":
		return false
	case others.known:
		return slices.Contains(others.owners, u.Metadata.Owner)
	}
	return u.Metadata.Owner != h.Owner
}

// isOtherInstance reports whether the machine has the storage from another living instance of this binding: one that is on record, or any
// one if there are no records. Such a machine belongs to another state with the same owner, or to an interrupted replacement.
func (o others) isOtherInstance(u guard.Use, own string) bool {
	return volume.OtherInstance(u.Binding, own) &&
		(!o.known || slices.Contains(o.instances, volume.ParseBinding(u.Binding).Instance))
}

// refreshReservation checks whether the claim still has the record. A missing one is drift: some tools drop unknown annotations. So is a
// record with another mode, after a killed update, and a restored claim without a record: other bindings could reserve it.
func (r *binding) refreshReservation(ctx context.Context, state *model, own privateState, diags *diag.Diagnostics) {
	ref, held, ok := state.reservationOf(ctx, own, diags)
	if !ok || !own.Reserved {
		return
	}
	client, err := r.Provider.Lists()
	if err != nil {
		return // already reported by refreshVolume
	}
	claim, err := client.Claim(ctx, ref.Namespace, ref.Name)
	if err != nil || claim.DeletionTimestamp != nil {
		return // already reported by refreshVolume
	}
	if string(claim.UID) != held.ClaimUID {
		state.Reserved = types.BoolValue(claim.Status.Phase != corev1.ClaimBound) // an unbound claim can't be reserved yet
		return
	}
	if err := reservation.CheckReadable(claim, held.ID); err != nil {
		diags.AddAttributeWarning(sourcePath.AtName(claimSource), "The reservation can't be read", err.Error())
		return
	}
	mode := reservation.Held(claim, held.ID, held.Nonce)
	// A later record is a successor's, or is left of an interrupted replacement and removed by the next update.
	state.Reserved = types.BoolValue(mode == held.Mode && reservation.Last(claim, held.ID, held.Nonce))
	switch {
	case !r.Provider.ReservesClaims:
	case mode == held.Mode && state.Reserved.ValueBool():
	case mode == held.Mode:
		diags.AddAttributeWarning(sourcePath.AtName(claimSource), "Another instance of the binding holds the claim",
			fmt.Sprintf("The %s is held for the binding %s of this state, and for another instance of it that came later: a replacement "+
				"was interrupted, or another state has the same owner, as the copy of a configuration's folder has. An apply takes the "+
				"other one off the claim, unless machines use it.", ref, held.Name))
	case mode == "" && reservation.HeldByOther(claim, held.ID, held.Nonce):
		diags.AddAttributeWarning(sourcePath.AtName(claimSource), "Another state holds the claim",
			fmt.Sprintf("The %s is held for another instance of the binding %s, which is not in this state: another state has the same "+
				"owner, as the copy of a configuration's folder has. Use only one of the two: destroying the binding here leaves alone "+
				"what the other one has.", ref, held.Name))
	case mode != "":
		diags.AddAttributeWarning(sourcePath.AtName(claimSource), "The reservation is for another mode",
			fmt.Sprintf("The %s is reserved %s for the binding %s, which is %s: an update was interrupted. The next apply recovers it.",
				ref, mode, held.Name, held.Mode))
	default:
		diags.AddAttributeWarning(sourcePath.AtName(claimSource), "The reservation has vanished",
			fmt.Sprintf("The %s no longer carries the reservation of the binding %s: %s. An apply puts it there again. Until then nothing "+
				"keeps others from taking the claim.", ref, held.Name, reservation.LastWriter(claim, held.ID)))
	}
}

// checkMode refuses a new mode that is incompatible with the machines that use the storage: write-exclusive with several of them, or any
// mode that conflicts with that of a running one, which keeps the mode that it was started with. One that only reads may go on to read.
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
		if mode == volume.ReadShared && u.Reads() {
			continue
		}
		if has := u.Image().AccessMode; mode != volume.WriteExclusive && u.Live && !has.CompatibleWith(mode) {
			return fmt.Errorf("%w: it can't become %s while %s runs with it %s, because a running machine keeps its mode. Stop that "+
				"machine (running = false) or take the %s away from it in an apply before", guard.ErrInUse, mode, name, has,
				u.Device.Kind())
		}
	}
	if mode == volume.WriteExclusive && len(users) > 1 {
		return fmt.Errorf("%w: it can't become write-exclusive while more than one machine uses it (%s). Take it away from all but one "+
			"first",
			guard.ErrInUse, strings.Join(slices.Sorted(maps.Values(users)), ", "))
	}
	return nil
}
