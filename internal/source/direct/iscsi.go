// Package direct is storage that is named directly, without a claim.
package direct

import (
	"context"
	"errors"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// maxLUN is the highest logical unit number that flat addressing can hold.
const maxLUN = 16383

// ISCSI is a logical unit of an iSCSI target.
type ISCSI struct {
	// Portal is host:port; the port defaults to 3260, and IPv6 addresses are in brackets.
	Portal string
	IQN    string
	LUN    int64
	// Initiator is the initiator name to log in with; empty leaves it to QEMU.
	Initiator string
	// Username is the CHAP user; empty means none, or that of SecretRef.
	Username string
	Password []byte
	// PasswordUnknown says that only an apply will tell the password; what Resolve gives then has none.
	PasswordUnknown bool
	// PasswordVersion is the user's own count of the passwords.
	PasswordVersion string
	// SecretRef is a Kubernetes secret with user and password, instead of Username and Password; nil means none.
	SecretRef *SecretRef
}

// SecretRef names a Kubernetes secret.
type SecretRef = source.SecretRef

// Validate checks all that can be known without asking anybody. It joins one source.Error for each wrong attribute.
func (i ISCSI) Validate() error {
	_, err := i.volume()
	return err
}

func (i ISCSI) volume() (volume.Volume, error) {
	var wrong []error
	blame := func(attribute string, err error) {
		if err != nil {
			wrong = append(wrong, &source.Error{Attribute: attribute, Err: err})
		}
	}
	portal, err := source.ParsePortal(i.Portal)
	blame("portal", err)
	iqn, err := source.ISCSIName(i.IQN)
	blame("iqn", err)
	if i.LUN < 0 || i.LUN > maxLUN {
		blame("lun", fmt.Errorf("%d is no logical unit number: they go from 0 to %d", i.LUN, maxLUN))
	}
	initiator := ""
	if i.Initiator != "" {
		initiator, err = source.ISCSIName(i.Initiator)
		blame("initiator", err)
	}
	if err := errors.Join(append(wrong, i.validateCredentials())...); err != nil {
		return volume.Volume{}, err
	}
	return source.ISCSIVolume(portal, iqn, i.LUN, initiator, nil), nil
}

func (i ISCSI) validateCredentials() error {
	hasPassword := len(i.Password) > 0 || i.PasswordUnknown
	switch {
	case i.SecretRef != nil && i.Username != "":
		return source.Errorf("username", "conflicts with secret_ref, which names the user, too: use one of them")
	case i.SecretRef != nil && hasPassword:
		return source.Errorf("password_wo", "conflicts with secret_ref, which holds the password, too: use one of them")
	case i.SecretRef != nil && (i.SecretRef.Namespace == "" || i.SecretRef.Name == ""):
		return source.Errorf("secret_ref", "needs both namespace and name")
	case i.Username != "" && !hasPassword:
		return source.Errorf("password_wo", "is missing or empty, but the CHAP user %q needs a password", i.Username)
	case i.Username == "" && hasPassword:
		return source.Errorf("username", "is missing, but password_wo is the password of a CHAP user")
	}
	return nil
}

// Resolve gives the volume, whose capacity is nil, and its credentials. secrets is only asked when there is a SecretRef.
// The error is Validate's or source.ReadCHAP's.
func (i ISCSI) Resolve(ctx context.Context, secrets source.SecretReader) (source.Resolved, error) {
	v, err := i.volume()
	if err != nil {
		return source.Resolved{}, err
	}
	if i.SecretRef != nil {
		credentials, err := source.ReadCHAP(ctx, secrets, *i.SecretRef, "secret_ref")
		if err != nil {
			return source.Resolved{}, err
		}
		return source.WithCHAP(v, credentials), nil
	}
	if i.Username == "" {
		return source.Resolved{Volume: v}, nil
	}
	return source.WithCHAP(v, source.CHAP(i.Username, i.Password, i.PasswordVersion)), nil
}
