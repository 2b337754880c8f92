package kernel

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/initramfs"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// make puts the two files on the host, and sets what is known of them then.
func (r *kernel) make(ctx context.Context, h *host.Host, plan *model, s sourceModel) (ids identities, err error) {
	pool, err := r.Provider.UsageTypes(plan.Host.ValueString()).Pool(ctx, h, plan.UsageType.ValueString())
	if err != nil {
		return ids, err
	}
	k, digest, err := r.read(ctx, h, s)
	if err != nil {
		return ids, err
	}
	initrd, err := initrdOf(k)
	if err != nil {
		return ids, err
	}
	spec := content.Spec{Pool: pool, Name: plan.Name.ValueString(), Prefix: plan.NamePrefix.ValueString(), Format: "raw"}
	if spec.Prefix != "" {
		spec.Name = ""
	}
	kernelPath := s.HostPath.ValueString()
	switch {
	case s.kind() == fromHost && spec.Prefix != "": // there is no kernel's volume whose name is generated
		spec.Name = spec.Prefix + strings.ToLower(rand.Text()[:10])
	case s.kind() != fromHost:
		made, err := r.createVolume(ctx, h, spec, k.Image)
		if err != nil {
			return ids, err
		}
		spec.Name, ids.Kernel, kernelPath = made.Name, made.Generation, made.Path
	}
	made, err := r.createVolume(ctx, h, content.Spec{Pool: pool, Name: initrdName(spec.Name), Format: "raw"}, initrd)
	if err != nil {
		return ids, r.undo(ctx, h, pool, spec.Name, ids.Kernel, err)
	}
	ids.Initrd = made.Generation
	plan.Name, plan.Pool, plan.ID = types.StringValue(spec.Name), types.StringValue(pool), types.StringValue(plan.Host.ValueString()+"/"+
		pool+"/"+spec.Name)
	plan.Release, plan.Architecture = tfvalue.OrNull(k.Release), types.StringValue(k.Architecture)
	if plan.Digest.IsUnknown() {
		plan.Digest = tfvalue.OrNull(digest)
	}
	plan.setBoot(kernelPath, made.Path)
	return ids, nil
}

func initrdOf(k *initramfs.Kernel) ([]byte, error) {
	init, err := guestinit.Binary(k.Architecture)
	if err != nil {
		return nil, err
	}
	var initrd bytes.Buffer
	err = k.Write(&initrd, init)
	return initrd.Bytes(), err
}

// createVolume creates a volume with that content. One that an interrupted apply has finished is taken over.
func (r *kernel) createVolume(ctx context.Context, h *host.Host, spec content.Spec, file []byte) (made content.Created, err error) {
	spec.Content = &content.Image{
		ID:   spec.Name,
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file)), nil },
	}
	r.Provider.RetryTaken(ctx, func() bool {
		made, err = r.Provider.Content.Make(ctx, h.Key, h, spec, func(host.Progress) {})
		return errors.Is(err, content.ErrTaken)
	})
	if !errors.Is(err, content.ErrTaken) {
		return made, err
	}
	is, failed := h.VolumePart(ctx, spec.Pool, spec.Name, 0, int64(len(file))+content.LargeSector)
	isSame := len(is) < len(file)+content.LargeSector && bytes.Equal(bytes.TrimRight(is, "\x00"), bytes.TrimRight(file, "\x00"))
	if failed != nil || !isSame {
		return made, errors.Join(err, failed)
	}
	v, err := h.Volume(ctx, spec.Pool, spec.Name)
	if err != nil {
		return made, err
	}
	seen, err := content.See(ctx, h, v, spec.Format)
	if err != nil {
		return made, err
	}
	return content.Created{StorageVolume: v, Generation: seen.ID}, nil
}

// undo deletes the kernel's volume after its initial RAM disk could not be made.
func (r *kernel) undo(ctx context.Context, h *host.Host, pool, name, generation string, cause error) error {
	if generation == "" {
		return cause
	}
	ctx, cancel := revert.Context(ctx)
	defer cancel()
	if err := r.removeVolume(ctx, h, nil, pool, name, generation); err != nil {
		return fmt.Errorf("%w\n\nLeft behind: the volume %s in storage pool %s, because it could not be deleted: %w", cause, name, pool,
			err)
	}
	return cause
}

// remove deletes both files. A domain that boots one of them would not start again.
func (r *kernel) remove(ctx context.Context, h *host.Host, m model, ids identities) error {
	kernelPath, initrd := m.paths()
	domains, err := guard.List(ctx, h)
	if err != nil {
		return err
	}
	if err := content.CheckStarts(domains, kernelPath, initrd); err != nil {
		return err
	}
	pool, name := m.Pool.ValueString(), m.Name.ValueString()
	err = r.removeVolume(ctx, h, domains, pool, initrdName(name), ids.Initrd)
	if err != nil || ids.Kernel == "" {
		return err
	}
	return r.removeVolume(ctx, h, domains, pool, name, ids.Kernel)
}

func (r *kernel) removeVolume(ctx context.Context, h *host.Host, domains []domainxml.Definitions, pool, name, generation string) error {
	_, err := content.Removable(ctx, h, domains, pool, name, "raw", generation)
	if errors.Is(err, host.ErrNotFound) {
		return content.Disown(ctx, h, pool, name, generation)
	}
	if err != nil {
		return err
	}
	return r.Provider.Content.Remove(ctx, h.Key, h, pool, name, generation)
}

// seen is what a host has of a kernel.
type seen struct {
	kernel, initrd string // paths
	architecture   string
	// missing is the name of a volume that is gone, if one is.
	missing string
}

// observe looks for the volumes of a kernel. Those of one that is being imported get their identities.
func (r *kernel) observe(ctx context.Context, h *host.Host, m model, ids *identities) (s seen, err error) {
	pool, name := m.Pool.ValueString(), m.Name.ValueString()
	isImported := m.Boot.IsNull() && *ids == identities{}
	s.kernel, _ = m.paths()
	for _, v := range []struct {
		name string
		id   *string
		path *string
	}{{name, &ids.Kernel, &s.kernel}, {initrdName(name), &ids.Initrd, &s.initrd}} {
		if *v.id == "" && !isImported {
			continue // the kernel is the user's
		}
		path, err := recognize(ctx, h, pool, v.name, v.id, isImported)
		if errors.Is(err, host.ErrNotFound) {
			s.missing = v.name
			continue
		}
		if err != nil {
			return s, err
		}
		*v.path = path
	}
	if m.Architecture.IsNull() && s.missing == "" {
		s.architecture, err = architectureOf(ctx, h, pool, name)
	}
	return s, err
}

// recognize returns the path of the volume with that identity, which is set before if the volume is being imported.
func recognize(ctx context.Context, h *host.Host, pool, name string, id *string, isImported bool) (path string, err error) {
	is, err := h.Volume(ctx, pool, name)
	if err := content.Described(err, "raw"); err != nil {
		return "", err
	}
	as, err := content.See(ctx, h, is, "raw")
	if err != nil {
		return "", err
	}
	if isImported {
		*id = as.ID
	}
	return is.Path, content.Recognize(as, "raw", *id)
}

// architectureOf is that of the kernel in a volume.
func architectureOf(ctx context.Context, h *host.Host, pool, name string) (string, error) {
	head, err := h.VolumePart(ctx, pool, name, 0, 64<<10)
	if err != nil {
		return "", err
	}
	return initramfs.ArchitectureOf(head)
}

// checkImport refuses what is no kernel with its initial RAM disk.
func checkImport(ctx context.Context, h *host.Host, pool, name string) error {
	for _, name := range []string{name, initrdName(name)} {
		if _, err := h.Volume(ctx, pool, name); err != nil {
			return err
		}
		if err := content.CheckImport(ctx, h, pool, name); err != nil {
			return err
		}
	}
	_, err := architectureOf(ctx, h, pool, name)
	return err
}
