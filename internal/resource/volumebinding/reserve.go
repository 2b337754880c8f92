package volumebinding

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// planReserved is whether the binding is to have a reservation; null for storage that is no claim's.
func (r *binding) planReserved(m model) types.Bool {
	if _, is := m.child(claimSource); !is {
		return types.BoolNull()
	}
	return types.BoolValue(r.backend.ReservesClaims)
}

// reservationOf is where the binding's record is, and what it says.
func (m model) reservationOf(ctx context.Context, own holding, diags *diag.Diagnostics) (reservation.Ref, reservation.Binding, bool) {
	c := m.claim(ctx, diags)
	if c == nil {
		return reservation.Ref{}, reservation.Binding{}, false
	}
	return reservation.Ref(c.ref()), reservation.Binding{
		ID: m.ID.ValueString(), Owner: own.Owner, Name: m.Name.ValueString(), Nonce: own.Nonce,
		Mode: volume.AccessMode(m.AccessMode.ValueString()), ClaimUID: own.ClaimUID,
	}, true
}

// reserve writes the record on the claim, if there is one and it is to be.
func (r *binding) reserve(ctx context.Context, m model, own holding, v volume.Volume, diags *diag.Diagnostics) error {
	ref, wanted, ok := m.reservationOf(ctx, own, diags)
	if !ok || !m.Reserved.ValueBool() {
		return nil
	}
	client, err := r.backend.Cluster()
	if err != nil {
		return err
	}
	return reservation.Reserve(ctx, client, ref, wanted, func(ctx context.Context) (reservation.Standing, error) {
		return r.standing(ctx, m, v)
	})
}

// release takes this binding's record off the claim; one that was never written is fine.
func (r *binding) release(ctx context.Context, m model, own holding, diags *diag.Diagnostics) error {
	ref, held, ok := m.reservationOf(ctx, own, diags)
	if !ok || !m.Reserved.ValueBool() {
		return nil
	}
	client, err := r.backend.Cluster()
	if err != nil {
		return err
	}
	return reservation.Release(ctx, client, ref, held.ID, held.Nonce, held.ClaimUID)
}

// standing tells who uses the storage of a claim that another binding of the same owner and name has: nobody, after an
// apply that was interrupted; machines of the same owner, while this one replaces the other; or somebody else.
func (r *binding) standing(ctx context.Context, m model, v volume.Volume) (s reservation.Standing, err error) {
	spares, err := r.spares(ctx, m)
	if err != nil {
		return s, err
	}
	s.Use = reservation.Free
	for _, key := range v.Images[0].Hosts {
		h, err := r.backend.Hosts.Host(key)
		if err != nil {
			return s, err
		}
		uses, err := guard.Users(ctx, key, h, v.Images[0])
		if err != nil {
			return s, err
		}
		for _, u := range slices.DeleteFunc(uses, spares) {
			s.Users = append(s.Users, fmt.Sprintf("domain %s on host %s", u.Domain, u.Host))
			switch {
			case u.Mark.Phase == "" || u.Mark.Owner != r.backend.Owner:
				s.Use = reservation.Foreign
			case s.Use == reservation.Free:
				s.Use = reservation.Ours
			}
		}
	}
	return s, nil
}

// spares tells which uses of the storage are none of this binding's: they have other credentials, or their owner has
// another binding of it. Of storage that is no claim's the latter is not known, but expected of every other owner.
func (r *binding) spares(ctx context.Context, m model) (func(guard.Use) bool, error) {
	var diags diag.Diagnostics
	id, c := m.ID.ValueString(), m.claim(ctx, &diags)
	var records []reservation.Record
	if c != nil && m.Reserved.ValueBool() {
		client, err := r.backend.Cluster()
		if err != nil {
			return nil, err
		}
		claim, err := client.Claim(ctx, c.Namespace.ValueString(), c.ClaimName.ValueString())
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err == nil {
			records = reservation.Look(claim)
		}
	}
	return func(u guard.Use) bool {
		if auth := u.Image().Auth; auth != nil {
			return auth.SecretUUID != id
		}
		if u.Mark.Phase == "" {
			return false
		}
		if c == nil || !m.Reserved.ValueBool() {
			return u.Mark.Owner != r.backend.Owner
		}
		return slices.ContainsFunc(records, func(other reservation.Record) bool { return other.ID != id && other.Owner == u.Mark.Owner })
	}, nil
}

// refreshReservation looks whether the claim still carries the record. One that vanished is drift: some tools drop
// annotations that they do not know.
func (r *binding) refreshReservation(ctx context.Context, state *model, own holding, diags *diag.Diagnostics) {
	ref, held, ok := state.reservationOf(ctx, own, diags)
	if !ok || !state.Reserved.ValueBool() {
		return
	}
	client, err := r.backend.Lists()
	if err != nil {
		return // refreshVolume has said so
	}
	claim, err := client.Claim(ctx, ref.Namespace, ref.Name)
	if err != nil || string(claim.UID) != held.ClaimUID || claim.DeletionTimestamp != nil {
		return // refreshVolume has said so
	}
	if !reservation.Has(claim, held.ID, held.Nonce) {
		state.Reserved = types.BoolValue(false)
		diags.AddAttributeWarning(sourcePath.AtName(claimSource), "The reservation has vanished",
			fmt.Sprintf("The %s no longer carries the reservation of the binding %s: %s. An apply puts it there again. Until then nothing "+
				"keeps others from taking the claim.", ref, held.Name, reservation.LastWriter(claim, held.ID)))
	}
}

// strengthen refuses to make a binding exclusive while more than one machine uses its storage.
func (r *binding) strengthen(ctx context.Context, plan, state model, v volume.Volume) error {
	if plan.AccessMode.Equal(state.AccessMode) || v.Images[0].AccessMode != volume.WriteExclusive {
		return nil
	}
	users := map[string]string{}
	for _, key := range v.Images[0].Hosts {
		h, err := r.backend.Hosts.Host(key)
		if err != nil {
			return err
		}
		uses, err := guard.Users(ctx, key, h, v.Images[0])
		if err != nil {
			return err
		}
		for _, u := range uses {
			users[u.UUID] = fmt.Sprintf("domain %s on host %s", u.Domain, u.Host)
		}
	}
	if len(users) > 1 {
		return fmt.Errorf("%w: it can't become write-exclusive while more than one machine uses it (%s). Take it away from all but one first",
			guard.ErrInUse, strings.Join(slices.Sorted(maps.Values(users)), ", "))
	}
	return nil
}
