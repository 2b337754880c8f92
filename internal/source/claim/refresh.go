package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// RefreshReader are the reads of Refresh: it reads no secret's data.
type RefreshReader interface {
	ObjectReader
	source.VersionReader
}

// Last is the result of the last read.
type Last struct {
	// UID is the claim's; empty if it is unknown.
	UID string
	// Auth is the volume's; nil if it had none.
	Auth *volume.Auth
}

// Refreshed is the result of a refresh.
type Refreshed struct {
	// Volume is nil if the last one is to be kept; otherwise it is as in source.Resolved.
	Volume *volume.Volume
	// Version is the version of the credentials; empty if there are none or it is unknown, so that the last one is kept.
	Version string
	// VolumeUID is the UID of the claim's PersistentVolume; empty if the last volume is to be kept.
	VolumeUID string
	// Warnings are complete sentences for the user.
	Warnings []string
}

// Refresh reads a claim that is in use. Machines and secrets depend on the last volume, so it is kept, with a warning, if the claim has
// become invalid in any way. Only a cluster that can't be queried is an error.
func Refresh(ctx context.Context, r RefreshReader, ref Ref, options Options, last Last) (Refreshed, error) {
	pv, claim, err := inUse(ctx, r, ref, last)
	var found location
	if err == nil {
		found, err = request{pv, claim, options}.locate(ctx, r)
	}
	if err == nil && found.login != nil && last.Auth == nil && !found.login.Optional() {
		err = source.Errorf("", "the PersistentVolume %s now asks for credentials; replace the binding to give them to its hosts", pv.Name)
	}
	if isAnswer(err) {
		return Refreshed{Warnings: []string{fmt.Sprintf("The volume is kept as it was last seen: %s.", err)}}, nil
	}
	if err != nil {
		return Refreshed{}, err
	}
	refreshed := Refreshed{Volume: &found.volume, VolumeUID: string(pv.UID), Warnings: found.warnings}
	if err := checkFilled(claim); err != nil {
		refreshed.Warnings = append(slices.Clone(refreshed.Warnings), fmt.Sprintf("Machines must not use it meanwhile: %s.", err))
	}
	if found.login == nil || last.Auth == nil {
		return refreshed, nil
	}
	found.volume.Images[0].Auth = &volume.Auth{Type: last.Auth.Type, Username: last.Auth.Username}
	version, warning, err := source.CurrentVersion(ctx, r, found.login.Secret)
	if err != nil {
		return Refreshed{}, err
	}
	if warning != "" {
		refreshed.Warnings = append(refreshed.Warnings, warning)
	}
	refreshed.Version = version
	return refreshed, nil
}

// inUse returns the claim and its volume if they are still those of the last read.
func inUse(ctx context.Context, r ObjectReader, ref Ref, last Last) (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim, error) {
	claim, err := r.Claim(ctx, ref.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, source.Errorf("", "the %s is gone", ref)
	case err != nil:
		return nil, nil, err
	case last.UID != "" && last.UID != string(claim.UID):
		return nil, nil, source.Errorf("", "the %s is another one than was bound (UID %s instead of %s)", ref, claim.UID, last.UID)
	case claim.DeletionTimestamp != nil:
		return nil, nil, source.Errorf("", "the %s is being deleted (since %s)", ref, claim.DeletionTimestamp)
	case claim.Status.Phase != corev1.ClaimBound:
		return nil, nil, source.Errorf("", "the %s is %s, no longer Bound", ref, claim.Status.Phase)
	}
	pv, err := boundVolume(ctx, r, claim)
	return pv, claim, err
}

// isAnswer reports whether an error is a state of the cluster, and not a failure to query it.
func isAnswer(err error) bool {
	var wrong *source.Error
	var notReady *source.NotReady
	return errors.As(err, &wrong) || errors.As(err, &notReady)
}
