package volumebinding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/secret"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
)

// privateState is what a binding keeps in its private state: no user needs to see it.
type privateState struct {
	// Nonce tells this binding's objects from those of another one of the same owner and name.
	Nonce string `json:"nonce"`
	// Owner is that of the provider when the binding was made: a changed one concerns new bindings only.
	Owner string `json:"owner,omitempty"`
	// Version is that of the source's credentials at the last look.
	Version string `json:"version"`
	// ClaimUID is the UID of the claim that was bound; empty for direct storage.
	ClaimUID string `json:"claimUID,omitempty"`
	// VolumeUID is the UID of the PersistentVolume that the claim had; empty for direct storage, and where an older virtclaim made the
	// binding, until it is refreshed.
	VolumeUID string `json:"volumeUID,omitempty"`
	// Remade tells that the claim was made again, maybe with other storage, and that the binding has not gone on with it yet.
	Remade bool `json:"remade,omitempty"`
	// Reserved tells that the claim has, or may have, the binding's record or finalizer. What a refresh sees of it is in
	// the state; this one stays true until it was released.
	Reserved bool `json:"reserved,omitempty"`
	// Everywhere tells that any host may have something of the binding: an update was killed, and may have reached hosts
	// that are not in the state.
	Everywhere bool `json:"everywhere,omitempty"`

	// inState tells that the binding is in state, and not just being made.
	inState bool
	// again tells that the claim was made again, and got the PersistentVolume that it had.
	again bool
}

// note keeps which claim and PersistentVolume were found. A claim that was made again and got the PersistentVolume that it had leads to the
// same storage, as far as that is known: see isOtherFile.
func (h *privateState) note(found claim.Info) {
	if h.ClaimUID != "" && h.ClaimUID != found.UID {
		h.again = h.VolumeUID != "" && h.VolumeUID == found.VolumeUID
		h.Remade = h.Remade || !h.again
	}
	h.ClaimUID, h.VolumeUID = found.UID, found.VolumeUID
}

const holdingKey = "holding"

type privateReader interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

type privateWriter interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func loadPrivateState(ctx context.Context, private privateReader) (h privateState, diags diag.Diagnostics) {
	raw, diags := private.GetKey(ctx, holdingKey)
	if len(raw) == 0 || diags.HasError() {
		return h, diags
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		diags.AddError("Unreadable private state", fmt.Sprintf("What virtclaim keeps with the binding can't be read: %s", err))
	}
	return h, diags
}

func (h privateState) save(ctx context.Context, private privateWriter) diag.Diagnostics {
	raw, err := json.Marshal(h)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Unwritable private state", err.Error())}
	}
	return private.SetKey(ctx, holdingKey, raw)
}

// holding is what a binding in state holds.
func (r *binding) holding(ctx context.Context, state model, private privateReader, diags *diag.Diagnostics) privateState {
	own, d := loadPrivateState(ctx, private)
	own.inState = true
	if diags.Append(d...); own.Nonce != "" || diags.HasError() {
		return own
	}
	own, err := r.rebuildPrivateState(ctx, state, diags)
	own.Everywhere, own.inState = true, true
	addSourceError(diags, "The binding could not be read", sourcePath, err)
	return own
}

// rebuildPrivateState finds out again what a binding keeps in its private state: Terraform loses that when the provider is killed in the
// middle of an update. The id stays, and by it the claim's record and the secrets are this binding's.
func (r *binding) rebuildPrivateState(ctx context.Context, state model, diags *diag.Diagnostics) (privateState, error) {
	id := state.ID.ValueString()
	if c := state.claim(ctx, diags); c != nil {
		if own, ok, err := r.recorded(ctx, c.Ref(), id); ok || err != nil {
			return own, err
		}
	}
	for _, key := range state.hostKeys(ctx, diags) {
		h, err := r.backend.Hosts.Host(key)
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
	return privateState{Nonce: uuid.NewString(), Owner: r.backend.Owner}, nil // nobody knows the old one
}

// recorded is what a claim tells of the binding of that id; ok is false when it tells nothing.
func (r *binding) recorded(ctx context.Context, ref claim.Ref, id string) (own privateState, ok bool, err error) {
	lists, err := r.backend.Lists()
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
	return own, false, nil
}

// privateStateOf is what the record on a claim tells of its binding, of the last one where there are two.
func privateStateOf(record reservation.Record) privateState {
	return privateState{Nonce: record.Nonces[len(record.Nonces)-1], Owner: record.Owner, ClaimUID: record.ClaimUID, Remade: record.Remade, Reserved: true}
}
