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

// RefreshReader is what Refresh needs: it reads no secret's data.
type RefreshReader interface {
	ObjectReader
	source.VersionReader
}

// Last is what was found before.
type Last struct {
	// UID is the claim's; empty when it is not known.
	UID string
	// Auth is that of the volume; nil when it had none.
	Auth *volume.Auth
}

// Refreshed is what a refresh saw.
type Refreshed struct {
	// Volume is nil when the last one is to be kept; otherwise it is as in source.Resolved.
	Volume *volume.Volume
	// Version is that of the credentials; empty when there are none or nobody could tell, so that the last one holds.
	Version string
	// VolumeUID is the UID of the claim's PersistentVolume; empty when the last volume is to be kept.
	VolumeUID string
	// Warnings are whole sentences for the user.
	Warnings []string
}

// Refresh looks at a claim that is in use. Whatever became of it, there are machines and secrets that depend on the last
// volume, so that is kept, with a warning, when there is no better one. Only a cluster that can't be asked is an error.
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

// inUse gets the claim and its volume when they still are what the last look found.
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

// isAnswer tells what the cluster says from a cluster that can't be asked.
func isAnswer(err error) bool {
	var wrong *source.Error
	var notReady *source.NotReady
	return errors.As(err, &wrong) || errors.As(err, &notReady)
}
