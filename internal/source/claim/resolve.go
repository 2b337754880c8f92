// Package claim resolves a PersistentVolumeClaim: is it bound, does its PersistentVolume allow the access mode and hosts, and where is the
// storage. There is one file for each kind of PersistentVolume.
package claim

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guide"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ObjectReader reads claims, volumes, and the objects that volumes reference, except secrets. Its errors work with apierrors.IsNotFound and
// the like.
type ObjectReader interface {
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	Volume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	//nolint:staticcheck // GlusterFS volumes refer to Endpoints, not to their successor
	Endpoints(ctx context.Context, namespace, name string) (*corev1.Endpoints, error)
}

// ClassReader reads the StorageClasses of claims.
type ClassReader interface {
	StorageClass(ctx context.Context, name string) (*storagev1.StorageClass, error)
}

// Reader are the reads of Resolve.
type Reader interface {
	ObjectReader
	source.SecretReader
	ClassReader
	Node(ctx context.Context, name string) (*corev1.Node, error)
}

// Ref names a claim.
type Ref struct{ Namespace, Name string }

func (r Ref) String() string { return "PersistentVolumeClaim " + r.Namespace + "/" + r.Name }

// Need is the intended use of the claim.
type Need struct {
	AccessMode volume.AccessMode
	// Nodes are the names of the hosts' Kubernetes nodes, one for each host.
	Nodes []string
	// NotSelecting is the setting for which Await must not select a node for a claim that waits for one; empty if it may.
	NotSelecting string
	Options
}

// Info identifies the claim.
type Info struct {
	// UID is that of the claim, VolumeUID that of its PersistentVolume.
	UID, VolumeUID string
}

// Resolve reads the claim once and never waits. Its error is a source.NotReady if the claim, its binding or its secret may still become
// ready, a source.Error if it stays invalid, and the Reader's otherwise.
func Resolve(ctx context.Context, r Reader, ref Ref, need Need) (source.Resolved, Info, error) {
	claim, err := read(ctx, r, ref)
	if err != nil {
		return source.Resolved{}, Info{}, err
	}
	if isPending(claim) {
		return source.Resolved{}, Info{}, need.pending(ctx, r, claim)
	}
	if err := checkFilled(claim); err != nil {
		return source.Resolved{}, Info{}, err
	}
	pv, err := boundVolume(ctx, r, claim)
	if err != nil {
		return source.Resolved{}, Info{}, err
	}
	found, err := request{pv, claim, need.Options}.locate(ctx, r)
	if err != nil {
		return source.Resolved{}, Info{}, err
	}
	if err := need.check(ctx, r, claim, pv, found); err != nil {
		return source.Resolved{}, Info{}, err
	}
	var credentials *volume.Credentials
	if found.login != nil {
		if credentials, err = found.login.Read(ctx, r, ""); err != nil {
			return source.Resolved{}, Info{}, err
		}
	}
	resolved := source.WithCredentials(found.volume, credentials)
	resolved.ReadOnly, resolved.DiskImage, resolved.Device = found.readOnly, found.diskImage, found.device
	resolved.Warnings = slices.Concat(found.warnings, found.hints)
	return resolved, Info{UID: string(claim.UID), VolumeUID: string(pv.UID)}, nil
}

func (n Need) check(ctx context.Context, r Reader, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume, found location) error {
	if err := n.checkAccess(claim, found.readOnly); err != nil {
		return err
	}
	if found.oneHost && len(n.Nodes) > 1 {
		return source.Errorf("", "the PersistentVolume %s of the %s is of the type %s, which is another folder on each host: "+
			"the binding must name one host only", pv.Name, refOf(claim), typeOf(pv))
	}
	if found.oneMount != "" && len(n.Nodes) > 1 {
		return source.Errorf(found.oneMount, "the PersistentVolume %s of the %s is of the type %s, with the access modes %s: the "+
			"binding must name one host only, and no other host or node may mount it: two destroy it. "+guide.See+
			"troubleshooting#claims-with-a-filesystem",
			pv.Name, refOf(claim), typeOf(pv), modeNames(claim.Status.AccessModes))
	}
	return n.checkNodes(ctx, r, pv)
}

// read returns a claim that is neither being deleted nor Lost.
func read(ctx context.Context, r ObjectReader, ref Ref) (*corev1.PersistentVolumeClaim, error) {
	claim, err := r.Claim(ctx, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return nil, source.NotReadyf("the %s does not exist: create it, or name another one: %w", ref, err)
	}
	if err != nil {
		return nil, err
	}
	return claim, checkStays(claim)
}

func checkStays(claim *corev1.PersistentVolumeClaim) error {
	ref := refOf(claim)
	if claim.DeletionTimestamp != nil {
		return source.NotReadyf("the %s is being deleted (since %s), so nothing new may use it: "+
			"wait until it is gone and recreate it, or name another one", ref, claim.DeletionTimestamp)
	}
	if claim.Status.Phase == corev1.ClaimLost {
		return source.Errorf("", "the %s is Lost: its PersistentVolume %s is gone or belongs to another claim; "+
			"delete the claim and recreate it, or name another one", ref, claim.Spec.VolumeName)
	}
	return nil
}
