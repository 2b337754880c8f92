package reservation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guide"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// DeletingError is the error of a claim that is being deleted: it can't be reserved any more.
type DeletingError struct {
	Claim Ref
	Since time.Time
	// Finalizers are those that delay the deletion.
	Finalizers []string
}

func (e *DeletingError) Error() string {
	return fmt.Sprintf("the %s can't be reserved: it is being deleted since %s, and waits for its finalizers (%s); "+
		"name another claim, or recreate it when it is gone",
		e.Claim, e.Since.UTC().Format(time.RFC3339), strings.Join(e.Finalizers, ", "))
}

// OtherClaimError is the error of a claim that was recreated since it was resolved.
type OtherClaimError struct {
	Claim Ref
	// Want is the UID that was resolved, Have the present one.
	Want, Have string
}

func (e *OtherClaimError) Error() string {
	return fmt.Sprintf("the %s is another one than was resolved (UID %s instead of %s): it was recreated; "+
		"look what it holds now, and apply again", e.Claim, e.Have, e.Want)
}

// Holder is a record that conflicts with a reservation.
type Holder struct {
	Record
	// Release is the kubectl command that releases the record.
	Release string
}

// Holders returns the records on a claim, sorted by id.
func Holders(claim *corev1.PersistentVolumeClaim) (holders []Holder) {
	for _, r := range Look(claim) {
		holders = append(holders, Holder{r, releaseCommand(claim, r)})
	}
	return holders
}

// HeldError is the error of a claim that other bindings hold.
type HeldError struct {
	Claim Ref
	// Mode is the requested access mode; empty if the claim was to be released and its record can't be parsed.
	Mode    volume.AccessMode
	Holders []Holder
	// ReleaseAll is the kubectl command that releases all of them.
	ReleaseAll string
}

func heldError(claim *corev1.PersistentVolumeClaim, mode volume.AccessMode, against []Record) error {
	e := &HeldError{Claim: refOf(claim), Mode: mode, ReleaseAll: releaseCommand(claim, against...)}
	for _, r := range against {
		e.Holders = append(e.Holders, Holder{r, releaseCommand(claim, r)})
	}
	return e
}

func (e *HeldError) Error() string {
	var text strings.Builder
	if e.Mode == "" {
		fmt.Fprintf(&text, "the %s can't be released: it is held by", e.Claim)
	} else {
		fmt.Fprintf(&text, "the %s can't be reserved %s: it is held by", e.Claim, e.Mode)
	}
	for i, h := range e.Holders {
		if i > 0 {
			text.WriteString(", and by")
		}
		fmt.Fprintf(&text, " %s", h)
	}
	if errors.Is(errors.Join(e.Unwrap()...), newer.Err) {
		return text.String() // who can't read a record can't tell whether its machines are gone, either
	}
	text.WriteString(".\nTo release by hand what was left, first make sure that no machine uses the claim's storage, then run:\n")
	for _, h := range e.Holders {
		fmt.Fprintf(&text, "  %s\n", h.Release)
	}
	if len(e.Holders) > 1 {
		fmt.Fprintf(&text, "or for all of them at once:\n  %s\n", e.ReleaseAll)
	}
	return text.String() + guide.See + "reservations#releasing-by-hand"
}

// Unwrap are the reasons why records of holders can't be parsed.
func (e *HeldError) Unwrap() (all []error) {
	for _, h := range e.Holders {
		if h.Unreadable != nil {
			all = append(all, h.Unreadable)
		}
	}
	return all
}

// TwoStatesError is the error of a claim that is held by another binding of the same owner and name, which is in another state.
type TwoStatesError struct {
	Claim  Ref
	Holder Holder
	// Users are the machines that have the storage from the other binding.
	Users []string
}

func twoStatesError(claim *corev1.PersistentVolumeClaim, holder Record, users []string) error {
	return &TwoStatesError{Claim: refOf(claim), Holder: Holder{holder, releaseCommand(claim, holder)}, Users: users}
}

func (e *TwoStatesError) Error() string {
	users := ""
	if len(e.Users) > 0 {
		users = ", and used by " + strings.Join(e.Users, ", ")
	}
	return fmt.Sprintf("the %s is held for another instance of %s, which is not in this state%s: another state has this "+
		"owner. If there is no other, release it:\n  %s\n"+guide.See+"reservations#two-states-with-one-owner",
		e.Claim, e.Holder, users, e.Holder.Release)
}

// ForeignError is the error of a claim that is held by another binding of the same owner and name while machines of other owners use it.
type ForeignError struct {
	Claim  Ref
	Holder Holder
	// Users are these machines.
	Users []string
}

func foreignError(claim *corev1.PersistentVolumeClaim, holder Record, users []string) error {
	return &ForeignError{Claim: refOf(claim), Holder: Holder{holder, releaseCommand(claim, holder)}, Users: slices.Clone(users)}
}

func (e *ForeignError) Error() string {
	users := "machines of others use it"
	if len(e.Users) > 0 {
		users += " (" + strings.Join(e.Users, ", ") + ")"
	}
	return fmt.Sprintf("the %s can't be taken over from another %s: %s.\n"+
		"Take it away, and apply again. If none uses it, release it by hand:\n  %s",
		e.Claim, e.Holder, users, e.Holder.Release)
}
