package volumebinding

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/secret"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/dynamic"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// privateState is the part of a binding that is not shown to users.
type privateState struct {
	// Nonce distinguishes this binding's objects from those of another one of the same owner and name.
	Nonce string `json:"nonce"`
	// Owner is the provider's owner at creation: a changed one applies to new bindings only.
	Owner string `json:"owner,omitempty"`
	// Version is the version of the source's credentials at the last refresh or apply.
	Version string `json:"version"`
	// ClaimUID is the UID of the claim that was bound; empty for direct storage.
	ClaimUID string `json:"claimUID,omitempty"`
	// VolumeUID is the UID of the claim's PersistentVolume; empty for direct storage, and for a binding that an older virtclaim created,
	// until it is refreshed.
	VolumeUID string `json:"volumeUID,omitempty"`
	// Remade is set if the claim was deleted and recreated, maybe with other storage, and the binding has not adopted it yet.
	Remade bool `json:"remade,omitempty"`
	// Reserved is set while the claim has, or may have, the binding's record or finalizer. The attribute in state shows what a refresh saw;
	// this field stays true until the release.
	Reserved bool `json:"reserved,omitempty"`
	// Everywhere is set if any host may have something of the binding: an update was killed, and may have reached hosts that are not in
	// state.
	Everywhere bool `json:"everywhere,omitempty"`
	// Imported is set until an update, because the options of the source are those that an import found, or null.
	Imported bool `json:"imported,omitempty"`

	// Answer is where the volume of a dynamic source is; nil before it was made, and for other sources.
	Answer *dynamic.Answer `json:"answer,omitempty"`
	// Moved is what the last refresh has been answered, if that was something else.
	Moved *dynamic.Answer `json:"moved,omitempty"`
	// PodLost is set if the last refresh found no pod of a dynamic source.
	PodLost bool `json:"podLost,omitempty"`

	// inState is set for a binding in state, and not during its creation.
	inState bool
	// again is set if the claim was recreated and got the same PersistentVolume.
	again bool
}

// note records which claim and PersistentVolume were found. A recreated claim with the same PersistentVolume is the same storage, as far as
// that is known: see isOtherFile.
func (h *privateState) note(found claim.Info) {
	if h.ClaimUID != "" && h.ClaimUID != found.UID {
		h.again = h.VolumeUID != "" && h.VolumeUID == found.VolumeUID
		h.Remade = h.Remade || !h.again
	}
	h.ClaimUID, h.VolumeUID = found.UID, found.VolumeUID
}

// moved is h with the latest answer.
func (h privateState) moved() privateState {
	if h.Moved != nil {
		h.Answer = h.Moved
	}
	return h
}

const privateStateKey = "holding"

func loadPrivateState(ctx context.Context, private tfvalue.PrivateReader, diags *diag.Diagnostics) privateState {
	h, _, err := tfvalue.LoadPrivate[privateState](ctx, private, privateStateKey, diags)
	if err != nil {
		diags.AddError("Unreadable private state", fmt.Sprintf("What virtclaim keeps with the binding can't be read: %s", err))
	}
	return h
}

// readPrivateState is the private state of a binding in state, rebuilt if it was lost.
func (r *binding) readPrivateState(ctx context.Context, state model, private tfvalue.PrivateReader, diags *diag.Diagnostics) privateState {
	own := loadPrivateState(ctx, private, diags)
	own.inState = true
	if own.Nonce != "" || diags.HasError() {
		return own
	}
	own, err := r.rebuildPrivateState(ctx, state, diags)
	own.Everywhere, own.inState = true, true
	addSourceError(diags, "The binding could not be read", sourcePath, err)
	return own
}

// rebuildPrivateState restores the private state, which Terraform loses when the provider is killed during an update. The id is still in
// state, and identifies the claim's record and the secrets.
func (r *binding) rebuildPrivateState(ctx context.Context, state model, diags *diag.Diagnostics) (privateState, error) {
	id := state.ID.ValueString()
	answer := state.answeredClaim(ctx, diags)
	if c := state.answered(ctx, privateState{Answer: answer}, diags).claim(ctx, diags); c != nil {
		if own, ok, err := r.recorded(ctx, c.Ref(), id); ok || err != nil {
			own.Answer = answer
			return own, err
		}
	}
	for _, key := range state.hostKeys(ctx, diags) {
		h, err := r.Provider.Hosts.Host(key)
		if err != nil {
			continue
		}
		record, err := secret.Get(ctx, h, id)
		if err == nil {
			return privateState{Nonce: record.Nonce, Owner: record.Owner}, nil
		}
		if !errors.Is(err, host.ErrNotFound) && !errors.Is(err, secret.ErrForeign) {
			return privateState{}, err
		}
	}
	return privateState{Nonce: uuid.NewString(), Owner: r.Provider.Owner}, nil // the old nonce is not recorded anywhere
}

// recorded is the private state according to the claim's record of the binding of that id; ok is false without a record.
func (r *binding) recorded(ctx context.Context, ref claim.Ref, id string) (own privateState, ok bool, err error) {
	lists, err := r.Provider.Lists()
	if err != nil {
		return own, false, err
	}
	there, err := lists.Claim(ctx, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return own, false, nil
	}
	if err != nil {
		return own, false, err
	}
	for _, record := range reservation.Look(there) {
		if record.ID == id && record.Unreadable == nil {
			return privateStateOf(record), true, nil
		}
	}
	return own, false, reservation.CheckReadable(there, id)
}

// privateStateOf is the private state of the binding in a claim's record, of the last instance if there are several.
func privateStateOf(record reservation.Record) privateState {
	return privateState{
		Nonce: record.Nonces[len(record.Nonces)-1], Owner: record.Owner, ClaimUID: record.ClaimUID, Remade: record.Remade,
		Reserved: true,
	}
}
