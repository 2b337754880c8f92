package direct

import (
	"context"
	"errors"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ISCSI is a logical unit of an iSCSI target.
type ISCSI struct {
	// Portal is host:port; the port defaults to 3260, and IPv6 addresses are in brackets.
	Portal string
	IQN    string
	LUN    int64
	// Initiator is the name of the initiator to log in with; empty means QEMU's default.
	Initiator string
	// Username is the CHAP user; empty means none, or the user in SecretRef.
	Username string
	Password []byte
	// PasswordUnknown is whether the password is known only during the apply; Resolve then returns credentials without one.
	PasswordUnknown bool
	// PasswordVersion is the version of the password, which the user counts.
	PasswordVersion string
	// SecretRef is a Kubernetes secret with user and password, instead of Username and Password; nil means none.
	SecretRef *SecretRef
}

// Validate checks everything that can be checked offline. It joins one source.Error for each invalid attribute.
func (i ISCSI) Validate() error {
	_, err := i.Storage()
	return err
}

// Storage returns the logical unit, without capacity and without credentials.
func (i ISCSI) Storage() (volume.Volume, error) {
	var w fieldErrors
	portal, err := source.ParsePortal(i.Portal)
	w.add("portal", err)
	iqn, err := source.ISCSIName(i.IQN)
	w.add("iqn", err)
	w.add("lun", source.CheckLUN(i.LUN))
	initiator := ""
	if i.Initiator != "" {
		initiator, err = source.ISCSIName(i.Initiator)
		w.add("initiator", err)
	}
	i.validateCredentials(&w)
	if err := w.err(); err != nil {
		return volume.Volume{}, err
	}
	return source.ISCSIVolume(portal, iqn, i.LUN, initiator, nil), nil
}

func (i ISCSI) validateCredentials(w *fieldErrors) {
	hasPassword := source.TrimLineBreak(string(i.Password)) != "" || i.PasswordUnknown
	switch {
	case i.SecretRef != nil && i.Username != "":
		w.add("username", errors.New("conflicts with secret_ref, which names the user, too: use one of them"))
	case i.SecretRef != nil && hasPassword:
		w.add("password_wo", errors.New("conflicts with secret_ref, which holds the password, too: use one of them"))
	case i.SecretRef != nil:
		w.add("secret_ref", checkSecretRef(*i.SecretRef))
	case i.Username != "":
		w.add("username", source.CheckUser(source.TrimLineBreak(i.Username)))
		if !hasPassword {
			w.add("password_wo", fmt.Errorf("is missing or empty, but the CHAP user %q needs a password", i.Username))
		}
	case hasPassword:
		w.add("username", errors.New("is missing, but password_wo is the password of a CHAP user"))
	}
}

// Resolve returns the volume, whose capacity is nil, and its credentials. secrets is used only if there is a SecretRef. The error is that
// of Validate or of reading the secret.
func (i ISCSI) Resolve(ctx context.Context, secrets source.SecretReader) (source.Resolved, error) {
	v, err := i.Storage()
	if err != nil {
		return source.Resolved{}, err
	}
	if i.SecretRef != nil {
		credentials, err := source.Login{Form: source.CHAP, Secret: *i.SecretRef}.Read(ctx, secrets, "secret_ref")
		if err != nil {
			return source.Resolved{}, err
		}
		return source.WithCredentials(v, credentials), nil
	}
	if i.Username == "" {
		return source.Resolved{Volume: v}, nil
	}
	return source.WithCredentials(v, source.CHAPCredentials(i.Username, i.Password, i.PasswordVersion)), nil
}
