package volumecontent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/pods"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var podPath = path.Root("via").AtName("pod")

// checkPod refuses a pod that can't fill the volume, as far as it is known.
func (r *volumeContent) checkPod(plan model, v volume.Volume, s sourceModel, diags *diag.Diagnostics) {
	refuse := func(at path.Path, text string) { diags.AddAttributeError(at, "No pod can fill the volume", text) }
	if r.Provider.Ready() && r.Provider.VolumeImage == "" {
		refuse(podPath,
			"This provider was built from source, so that it has no default image for pods. Set kubernetes = { volume_image = … } in its "+
				"configuration.")
	}
	if len(v.Images) > 0 && v.Images[0].Binding != "" && volume.ParseBinding(v.Images[0].Binding).Claim == "" {
		refuse(podPath, fmt.Sprintf("%s is no claim, so that no pod can mount it. Let a host write.", v.Images[0].Name))
	}
	switch {
	case plan.Verify.ValueBool():
		refuse(path.Root("verify"), "Only a host reads back what it has written.")
	case plan.kind() == "volume":
		refuse(sourcePath.AtName("volume"), "Only a host can copy a volume.")
	case s.Container != nil && !s.Container.Username.IsNull():
		refuse(sourcePath.AtName("container_image").AtName("username"), "The pod has no credentials for a registry. Let a host write, or "+
			"use an image that can be pulled without them.")
	}
}

// pod is the pod that fills the volume.
func (w *writer) pod(ctx context.Context) (p pods.Filler, err error) {
	ref := volume.ParseBinding(w.target.Images[0].Binding)
	p = pods.Filler{Namespace: ref.Namespace, Claim: ref.Claim, Image: w.Provider.VolumeImage, ID: podID(ref), Overwrite: w.overwrite}
	client, err := w.Provider.Cluster()
	if err != nil {
		return p, err
	}
	p.Cluster = client
	claim, err := client.Claim(ctx, ref.Namespace, ref.Claim)
	if err != nil {
		return p, err
	}
	p.Block = claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock
	if selector := w.plan.via(ctx, w.diags).pod(ctx, w.diags); selector != nil && !selector.NodeSelector.IsNull() {
		w.diags.Append(selector.NodeSelector.ElementsAs(ctx, &p.NodeSelector, false)...)
	}
	return p, nil
}

// podID distinguishes the pods of claims: local volumes of one path, on several nodes, have one FillID.
func podID(ref volume.BindingRef) string {
	sum := sha256.Sum256([]byte("pod\x00" + ref.Namespace + "\x00" + ref.Claim))
	return hex.EncodeToString(sum[:8])
}

// fillByPod returns what fills the volume by a pod. begin is called before the pod may write, and once it has found the volume unused, or
// may overwrite it.
func (w *writer) fillByPod(spec content.Spec, digest string, report func(host.Progress)) func(ctx context.Context, begin func() error,
	overwrite bool) error {
	return func(ctx context.Context, begin func() error, overwrite bool) error {
		p, err := w.pod(ctx)
		if err != nil {
			return err
		}
		p.Overwrite = overwrite
		switch {
		case spec.Content != nil:
			_, err = p.Upload(ctx, func(ctx context.Context) (io.ReadCloser, error) {
				image, err := spec.Content.Open(ctx)
				if err != nil {
					return nil, err
				}
				if err := begin(); err != nil {
					return nil, errors.Join(err, image.Close())
				}
				return image, nil
			}, func(done int64) { report(host.Progress{Done: done}) })
		case spec.Base != nil:
			if !overwrite {
				err = p.CheckUnused(ctx)
			}
			if err == nil {
				err = begin()
			}
			if err == nil {
				_, err = p.Copy(ctx, pinned(w.secrets.Container.Image.ValueString(), digest), w.secrets.Container.Path.ValueString())
			}
		default:
			if err = begin(); err == nil {
				err = p.Erase(ctx)
			}
		}
		if errors.Is(err, pods.ErrHasContent) {
			err = fmt.Errorf("%w: %w", content.ErrNotBlank, err)
		}
		return err
	}
}

// pinned is the reference of an image by its digest.
func pinned(reference, digest string) string {
	name, _, _ := strings.Cut(reference, "@")
	if at := strings.LastIndex(name, ":"); at > strings.LastIndex(name, "/") {
		name = name[:at]
	}
	return name + "@" + digest
}
