package reservation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

const (
	// keyPrefix and a binding's id are the name of the annotation with its record.
	keyPrefix = "virtclaim.io/binding."
	// Finalizer delays the deletion of a claim that has a record: Kubernetes itself delays it only for pods.
	Finalizer = "virtclaim.io/reservation"
)

// Record is the record of one binding on a claim.
type Record struct {
	// ID is the binding's id.
	ID string
	// Owner and Name are those of the binding; Owner is empty for a configuration without one.
	Owner, Name string
	// Nonces are those of the bindings of this id that hold the claim, the oldest first: more than one while a binding replaces another
	// one.
	Nonces   []string
	Mode     volume.AccessMode
	ClaimUID string
	// Remade is whether the claim was recreated and the binding has not adopted the new one yet.
	Remade bool
	// Unreadable is why the record can't be parsed, as newer.Err; nil if it can. Such a record belongs to an unknown holder, with an
	// unknown mode.
	Unreadable error
}

// stored is the JSON of a record in its annotation, whose name has the id. It has no hosts, because all annotations of an object together
// may have 256 KiB.
type stored struct {
	Owner    string            `json:"owner"`
	Name     string            `json:"name"`
	Nonces   []string          `json:"nonces"`
	Mode     volume.AccessMode `json:"mode"`
	ClaimUID string            `json:"claimUID"`
	Remade   bool              `json:"remade,omitempty"`
}

// Look returns the records on a claim, sorted by id. Records for the UID of another claim came with a backup or a copy: they hold nothing
// and are left out. A record that can't be parsed may hold the claim and is included.
func Look(claim *corev1.PersistentVolumeClaim) (records []Record) {
	for key, value := range claim.Annotations {
		id, ok := strings.CutPrefix(key, keyPrefix)
		if !ok {
			continue
		}
		if r := parse(id, value); r.Unreadable != nil || r.ClaimUID == string(claim.UID) {
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.ID, b.ID) })
	return records
}

// Held returns the mode in which the claim is held under a binding's id and nonce: there must be the record, and the finalizer that
// enforces it. It is empty if the claim is not held.
func Held(claim *corev1.PersistentVolumeClaim, id, nonce string) volume.AccessMode {
	r, _ := find(Look(claim), id)
	if !slices.Contains(r.Nonces, nonce) || !slices.Contains(claim.Finalizers, Finalizer) {
		return ""
	}
	return r.Mode
}

// HeldByOther reports whether there is a record under a binding's id without the binding's nonce.
func HeldByOther(claim *corev1.PersistentVolumeClaim, id, nonce string) bool {
	r, ok := find(Look(claim), id)
	return ok && !slices.Contains(r.Nonces, nonce)
}

// Last reports whether a binding is the last one that holds the claim under its id, or no binding does.
func Last(claim *corev1.PersistentVolumeClaim, id, nonce string) bool {
	r, _ := find(Look(claim), id)
	return slices.Index(r.Nonces, nonce) == len(r.Nonces)-1
}

// CheckReadable is why the record of a binding can't be parsed; nil if it can, or there is none.
func CheckReadable(claim *corev1.PersistentVolumeClaim, id string) error {
	r, _ := find(Look(claim), id)
	if r.Unreadable == nil {
		return nil
	}
	return fmt.Errorf("the record %s%s of the %s can't be read: %w", keyPrefix, id, refOf(claim), r.Unreadable)
}

func find(records []Record, id string) (Record, bool) {
	i := slices.IndexFunc(records, func(r Record) bool { return r.ID == id })
	if i < 0 {
		return Record{}, false
	}
	return records[i], true
}

func parse(id, value string) Record {
	var s stored
	err := newer.JSON([]byte(value))
	if err == nil {
		err = json.Unmarshal([]byte(value), &s)
	}
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return Record{ID: id, Unreadable: err}
	}
	return Record{ID: id, Owner: s.Owner, Name: s.Name, Nonces: s.Nonces, Mode: s.Mode, ClaimUID: s.ClaimUID, Remade: s.Remade}
}

func (s stored) check() error {
	switch {
	case len(s.Nonces) == 0 || slices.Contains(s.Nonces, ""):
		return errors.New("it has no nonce")
	case s.ClaimUID == "":
		return errors.New("it has no claim UID")
	}
	switch s.Mode {
	case volume.WriteExclusive, volume.WriteShared, volume.ReadShared:
		return nil
	}
	return fmt.Errorf("the access mode %q is not known", s.Mode)
}

func (r Record) value() string {
	text, _ := json.Marshal(stored{r.Owner, r.Name, r.Nonces, r.Mode, r.ClaimUID, r.Remade}) // strings can always be marshaled
	return string(text)
}

// String names the binding and its access mode.
func (r Record) String() string {
	if r.Unreadable != nil {
		return fmt.Sprintf("an unknown holder (id %s, whose record can't be read: %s)", r.ID, r.Unreadable)
	}
	return fmt.Sprintf("binding %q of %s (%s, id %s)", r.Name, ownedBy(r.Owner), r.Mode, r.ID)
}

func ownedBy(owner string) string {
	if owner == "" {
		return "a configuration without an owner"
	}
	return fmt.Sprintf("owner %q", owner)
}
