package volumecontent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// writer fills one volume through a host.
type writer struct {
	*volumeContent
	plan model
	// secrets is the configured source, which has its write-only values.
	secrets sourceModel
	// target is the volume; its capacity is measured.
	target    volume.Volume
	overwrite bool
	// again is whether what the claim is recorded to have been filled with is written once more: machines may have written since.
	again bool
	diags *diag.Diagnostics
}

// fill writes the configured content onto the volume. A claim that was filled with it by an apply whose state was lost is left as it is,
// but for again.
func (w *writer) fill(ctx context.Context) (is reservation.Content, err error) {
	h, spec, err := w.prepare(ctx)
	if err != nil {
		return is, err
	}
	if w.plan.kind() == "volume" {
		err = w.prepareMaster(ctx, h, &spec)
	} else {
		is.Digest, err = w.secrets.Prepare(ctx, &w.Provider.Tags, h.Architecture, &spec)
	}
	if err != nil {
		return is, err
	}
	if planned := w.plan.Digest; !planned.IsUnknown() && planned.ValueString() != is.Digest {
		return is, fmt.Errorf("the content changed during the apply: its digest is %s, and was %s in the plan. Plan and apply again",
			is.Digest, planned.ValueString())
	}
	is.Generation = generationOf(w.target, is.Digest, w.secrets.file())
	c, err := w.claimOf(w.target)
	if err != nil {
		return is, err
	}
	was, err := c.read(ctx)
	if err != nil {
		return is, err
	}
	if was.Generation == is.Generation && !was.Filling && !w.again {
		_, err = w.forgetFills(ctx) // the apply that has filled it may have been killed before it did
		return is, err
	}
	return is, w.write(ctx, h, spec, c, is)
}

// end erases the volume, or leaves its data.
func (w *writer) end(ctx context.Context) error {
	c, err := w.claimOf(w.target)
	if err != nil {
		return err
	}
	if w.plan.Erase.ValueBool() {
		h, spec, err := w.prepare(ctx)
		if err != nil {
			return err
		}
		return w.write(ctx, h, spec, c, reservation.Content{})
	}
	if w.byPod(ctx) {
		p, err := w.pod(ctx)
		if err == nil {
			err = p.Remove(ctx)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	isHalf, err := w.forgetFills(ctx)
	if err != nil {
		return err
	}
	if isHalf {
		w.diags.AddAttributeWarning(targetPath, "The volume is not complete", fmt.Sprintf("Writing to %s was interrupted. It has only a "+
			"part of its content, and nothing says so any more.", w.target.Images[0].Name))
	}
	return c.forget(ctx)
}

// forgetFills removes what interrupted applies have left on the volume's hosts.
func (w *writer) forgetFills(ctx context.Context) (isHalf bool, err error) {
	for _, key := range w.target.Images[0].Hosts {
		h, err := w.Provider.Hosts.Host(key)
		if err != nil {
			w.diags.AddAttributeWarning(targetPath, "A host could not be asked", fmt.Sprintf("%s. If an apply was interrupted there, the "+
				"domain virtclaim-%s may be left: virsh undefine it.", err, content.FillID(w.target)))
			continue
		}
		half, err := w.Provider.Content.ForgetFill(ctx, key, h, w.target)
		if err != nil {
			return isHalf, err
		}
		isHalf = isHalf || half
	}
	return isHalf, nil
}

func (w *writer) byPod(ctx context.Context) bool {
	return w.plan.via(ctx, w.diags).pod(ctx, w.diags) != nil
}

// prepare chooses the host and its storage pool, and measures the volume.
func (w *writer) prepare(ctx context.Context) (*host.Host, content.Spec, error) {
	h, err := w.host(ctx)
	if err != nil {
		return nil, content.Spec{}, err
	}
	if w.byPod(ctx) {
		return h, specOf(w.target), nil
	}
	types := w.Provider.UsageTypes(h.Key)
	usage := w.plan.via(ctx, w.diags).UsageType.ValueString()
	if usage == "" {
		if usage, err = types.First(ctx); err != nil {
			return nil, content.Spec{}, err
		}
	}
	pool, err := types.Pool(ctx, h, usage)
	if err != nil {
		return nil, content.Spec{}, err
	}
	bytes, err := content.SizeOf(ctx, h, h, w.target)
	if err == nil && bytes%512 != 0 {
		err = fmt.Errorf("it has %d bytes, which is not a multiple of 512. Make it larger", bytes)
	}
	w.target.Capacity = &bytes
	return h, content.Spec{Pool: pool, Capacity: bytes, IsFixed: true}, err
}

// host is the configured host, or else the one where the last write was interrupted, or the first one that answers.
func (w *writer) host(ctx context.Context) (*host.Host, error) {
	if key := w.plan.via(ctx, w.diags).Host.ValueString(); key != "" {
		if checkHost(w.target, key, w.diags); w.diags.HasError() {
			return nil, errors.New("another host has to write")
		}
		return w.Provider.Hosts.Host(key)
	}
	var first *host.Host
	var failed []error
	for _, key := range w.target.Images[0].Hosts {
		h, err := w.Provider.Hosts.Host(key)
		is := false
		if err == nil {
			is, err = content.IsFilling(ctx, h, w.target)
		}
		if is {
			return h, nil
		}
		if failed = append(failed, err); err == nil && first == nil {
			first = h
		}
	}
	if first == nil {
		return nil, fmt.Errorf("no host of the volume can write to it: %w", errors.Join(failed...))
	}
	return first, nil
}

func checkHost(v volume.Volume, key string, diags *diag.Diagnostics) {
	if len(v.Images) > 0 && !slices.Contains(v.Images[0].Hosts, key) {
		diags.AddAttributeError(path.Root("via").AtName("host"), "Host not in the binding", fmt.Sprintf("%s is there for the hosts %s, "+
			"not for %s. Add %[3]s to the hosts of its binding, or choose one of those.", v.Images[0].Name, strings.Join(v.Images[0].Hosts,
			", "), key))
	}
}

// prepareMaster checks the volume that is copied.
func (w *writer) prepareMaster(ctx context.Context, h *host.Host, spec *content.Spec) error {
	master, known := w.plan.master(ctx, w.diags)
	if !known {
		return errors.New("the volume of the source is null, or has no image")
	}
	for _, i := range master.Images {
		if !slices.Contains(i.Hosts, h.Key) {
			return fmt.Errorf("the source %s is there for the hosts %s, and %s is to copy it. Add that to the hosts of its binding, or "+
				"choose another one in via", i.Name, strings.Join(i.Hosts, ", "), h.Key)
		}
	}
	if volume.Overlap(master.Images[0], w.target.Images[0]) {
		return errors.New("the source is the volume itself")
	}
	seen, err := content.InspectChain(ctx, h, master.Images)
	if err == nil {
		err = content.RecognizeChain(ctx, h, master.Images, seen)
	}
	if err == nil && !master.Images[0].IsDisk() {
		var bytes int64
		bytes, err = content.SizeOf(ctx, h, h, master)
		master.Capacity = &bytes
	}
	if err != nil {
		return fmt.Errorf("the source: %w", err)
	}
	if *master.Capacity > spec.Capacity {
		return fmt.Errorf("the source has %d bytes, and the volume %d. Use a larger volume", *master.Capacity, spec.Capacity)
	}
	spec.Mode, spec.Master = volume.CopyOnWrite, master
	quiet := guard.Master{Host: h.Key, Images: master.Images, Hosts: w.waiter, All: guard.HostsOf(w.Provider.Hosts)}
	spec.Precheck = quiet.AwaitQuiet
	return nil
}

func (w *writer) waiter(key string) (guard.Waiter, error) { return w.Provider.Hosts.Host(key) }

// write writes onto the volume while no machine or pod uses it. The claim's record says when it is not complete.
func (w *writer) write(ctx context.Context, h *host.Host, spec content.Spec, c claimed, is reservation.Content) error {
	defer w.Provider.Files.Forget()
	begun := is
	begun.Filling = true
	f := content.Fill{
		Target: w.target, Source: spec, Overwrite: w.overwrite, Verify: w.plan.Verify.ValueBool() && is.Generation != "",
		Acquire: w.acquire(h.Key), Begin: func(ctx context.Context) error { return c.record(ctx, begun) },
		End: func(ctx context.Context) error {
			if is.Generation == "" {
				return c.forget(ctx)
			}
			return c.record(ctx, is)
		},
	}
	if is.Digest != "" {
		f.Content = is.Generation
	}
	report := w.progress(ctx, h.Key)
	if w.byPod(ctx) {
		f.Write = w.fillByPod(spec, is.Digest, report)
	}
	err := w.Provider.Content.Fill(ctx, h.Key, h, f, report)
	if w.byPod(ctx) && errors.Is(err, content.ErrNotBlank) { // the record says that it was to write
		err = errors.Join(err, c.forget(ctx))
	}
	return err
}

// acquire returns what waits until no machine or pod uses the volume, after the journal is visible to them.
func (w *writer) acquire(key string) func(ctx context.Context, name, uuid string) error {
	return func(ctx context.Context, name, uuid string) error {
		top := w.target.Images[0]
		top.Generation = ""
		if top.Type == "network" && w.overwrite { // a machine of any host may read what is there, by another binding
			top.Hosts = w.Provider.Hosts.Keys()
		}
		_, err := guard.Acquire(ctx, guard.Request{
			Host: key, Name: name, UUID: uuid, Owner: w.Provider.Owner, Images: []volume.Image{top}, Hosts: w.waiter,
			Releases: w.Provider.Releases(),
		})
		if err != nil {
			return err
		}
		if w.byPod(ctx) { // one that an interrupted apply has left
			p, err := w.pod(ctx)
			if err == nil {
				err = p.Remove(ctx)
			}
			if err != nil {
				return err
			}
		}
		return w.checkPods(ctx, w.target, w.diags)
	}
}

func (w *writer) progress(ctx context.Context, key string) func(host.Progress) {
	started := time.Now()
	return func(p host.Progress) {
		fields := map[string]any{
			"host": key, "volume": w.target.Images[0].Name, "bytes": p.Done,
			"since": time.Since(started).Round(time.Second).String(),
		}
		if p.All > 0 {
			fields["of_bytes"] = p.All
		}
		tflog.Info(ctx, "Filling the volume", fields)
	}
}
