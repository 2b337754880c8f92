package reservation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

const (
	// keyPrefix and a binding's id are the name of the annotation that holds its record.
	keyPrefix = "virtclaim.io/binding."
	// Finalizer keeps a claim that has a record from being deleted: Kubernetes itself does that for pods only.
	Finalizer = "virtclaim.io/reservation"
)

// Record is what is written on a claim about one binding.
type Record struct {
	// ID is the binding's id.
	ID string
	// Owner and Name are those of the binding; Owner is empty for a configuration without one.
	Owner, Name string
	// Nonces are those of the bindings of this id that hold the claim, the oldest first: more than one while one of them
	// replaces the other.
	Nonces   []string
	Mode     volume.AccessMode
	ClaimUID string
	// Remade tells that the claim was made again, and that the binding has not gone on with it yet.
	Remade bool
	// Unreadable is why the record can't be understood; nil when it can. Such a record is somebody's, in some mode.
	Unreadable error
}

// stored is a record as the annotation has it, with the id in its name. Hosts are not in it: all annotations of an object
// together may have 256 KiB.
type stored struct {
	Owner    string            `json:"owner"`
	Name     string            `json:"name"`
	Nonces   []string          `json:"nonces"`
	Mode     volume.AccessMode `json:"mode"`
	ClaimUID string            `json:"claimUID"`
	Remade   bool              `json:"remade,omitempty"`
}

// Look gives the records on a claim, sorted by id. Those made for a claim of another UID came along with a backup or a
// copy: they hold nothing and are left out. What can't be read is somebody's record and is not left out.
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

// Held is the mode in which the claim is held under a binding's id and nonce: there is the record, and the finalizer that
// gives it force. It is empty when the claim is not held so.
func Held(claim *corev1.PersistentVolumeClaim, id, nonce string) volume.AccessMode {
	r, _ := find(Look(claim), id)
	if !slices.Contains(r.Nonces, nonce) || !slices.Contains(claim.Finalizers, Finalizer) {
		return ""
	}
	return r.Mode
}

// HeldByOther tells whether there is a record under a binding's id, and the binding's nonce is not on it.
func HeldByOther(claim *corev1.PersistentVolumeClaim, id, nonce string) bool {
	r, ok := find(Look(claim), id)
	return ok && !slices.Contains(r.Nonces, nonce)
}

// Last tells whether a binding is the last that holds the claim under its id: no other one has come after it.
func Last(claim *corev1.PersistentVolumeClaim, id, nonce string) bool {
	r, _ := find(Look(claim), id)
	return slices.Index(r.Nonces, nonce) == len(r.Nonces)-1
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
	err := json.Unmarshal([]byte(value), &s)
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
	text, _ := json.Marshal(stored{r.Owner, r.Name, r.Nonces, r.Mode, r.ClaimUID, r.Remade}) // which can't fail for strings
	return string(text)
}

// String names the binding and what it holds the claim for.
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
