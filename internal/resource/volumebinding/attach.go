package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/pods"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var attachPath = sourcePath.AtName(claimSource).AtName("attach")

// planAttached is the planned value of attached; null without attach. It refuses what an apply would.
func (r *binding) planAttached(ctx context.Context, m model, state *model, diags *diag.Diagnostics) types.Bool {
	c := m.claim(ctx, diags)
	switch {
	case m.Source.IsUnknown() || c != nil && c.Attach.IsUnknown():
		return types.BoolUnknown()
	case c == nil || !c.Attach.ValueBool():
		return types.BoolNull()
	case r.Provider.Owner == "":
		diags.AddAttributeError(attachPath, "The provider has no owner", "attach: an apply that is interrupted could not find the pod "+
			"again that it had made: set owner in the provider's configuration.")
	case r.Provider.VolumeImage == "":
		diags.AddAttributeError(attachPath, "No image for the pod", "attach: this provider was built from source, so that it has no "+
			"default image for pods. Set kubernetes = { volume_image = … } in its configuration.")
	case state == nil && !m.Hosts.IsUnknown() && !slices.ContainsFunc(m.Hosts.Elements(), isUnknown):
		client, err := r.Provider.Cluster()
		for _, key := range m.hostKeys(ctx, diags) {
			if err == nil {
				err = checkNode(ctx, client, key, r.Provider.Hosts.Node(key))
			}
		}
		addSourceError(diags, "The volume can't be attached", attachPath, err)
	}
	return types.BoolValue(true)
}

// checkNode refuses a host whose node is not there: a pod on it would be removed again at once.
func checkNode(ctx context.Context, client *cluster.Client, key, node string) error {
	_, err := client.Node(ctx, node)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("the cluster has no node %s, so that Kubernetes mounts nothing on host %s: set kubernetes_node of the host in "+
			"the provider's configuration, or mount the volume yourself (mount_path)", node, key)
	}
	return err
}

// attached is a volume that Kubernetes mounts on one host, because a pod has it there. The host has that mount at the folder of the image,
// too, which is the same on all hosts; the kubelet's own is named after the pod.
type attached struct {
	host   *host.Host
	client *cluster.Client
	pod    pods.Holder
	folder string
	// kubelet is the root directory of the host's kubelet.
	kubelet string
}

// attachedOn is the volume of a binding on these hosts; none without attach.
func (r *binding) attachedOn(ctx context.Context, m model, v volume.Volume, keys []string, diags *diag.Diagnostics) ([]attached, error) {
	c := m.claim(ctx, diags)
	if c == nil || !c.Attach.ValueBool() || len(v.Images) == 0 {
		return nil, nil
	}
	client, err := r.Provider.Cluster()
	if err != nil {
		return nil, err
	}
	folder := path.Clean(v.Images[0].Name)
	if isDiskImage(v) {
		folder = path.Dir(folder)
	}
	uid, ok := strings.CutPrefix(folder, claim.AttachedPrefix)
	if !ok {
		return nil, nil // it was imported, and is not attached yet
	}
	var all []attached
	for _, key := range keys {
		h, _ := r.Provider.Hosts.Host(key) // of one that the provider no longer has, the pod is left
		all = append(all, attached{
			host: h, client: client, folder: folder, kubelet: r.Provider.Hosts.Kubelet(key),
			pod: pods.Holder{
				Cluster: client, Namespace: c.Namespace.ValueString(), Claim: c.ClaimName.ValueString(), Volume: uid, Host: key,
				Node: r.Provider.Hosts.Node(key), Image: r.Provider.VolumeImage, Binding: m.ID.ValueString(),
			},
		})
	}
	return all, nil
}

// attach has Kubernetes mount the volume of a binding on these hosts, where it does not yet. undo reverts what is new: what is there may
// be of the instance that this one replaces, and of its machines.
func (r *binding) attach(ctx context.Context, m model, v volume.Volume, keys []string, undo *revert.Stack, diags *diag.Diagnostics) error {
	all, err := r.attachedOn(ctx, m, v, keys, diags)
	if err != nil || len(all) == 0 {
		return err
	}
	defer tfvalue.Progress(ctx, "Waiting for Kubernetes to mount the volume", map[string]any{"binding": m.Name.ValueString()})()
	for _, a := range all {
		if err := checkNode(ctx, a.client, a.pod.Host, a.pod.Node); err != nil {
			return err
		}
		isNew, err := a.pod.Start(ctx)
		if isNew {
			undo.Push(a.remove)
		}
		if err != nil {
			return err
		}
	}
	for _, a := range all {
		err = errors.Join(err, a.finish(ctx))
	}
	return err
}

// finish waits for the pod, and mounts what it has at the folder, too.
func (a attached) finish(ctx context.Context) error {
	uid, err := a.pod.Await(ctx)
	if err != nil {
		return err
	}
	c, err := a.client.Claim(ctx, a.pod.Namespace, a.pod.Claim)
	if err != nil {
		return err
	}
	err = a.host.BindMount(ctx, a.volumes(uid), c.Spec.VolumeName, a.folder, func() error { return a.checkIdle(ctx) })
	if errors.Is(err, host.ErrNotMounted) {
		err = fmt.Errorf("%w, but pod %s has the volume on node %s. Is the host that node (kubernetes_node), and its kubelet's root "+
			"directory %s (kubelet_root_dir)?", err, a.pod.Name(), a.pod.Node, a.kubelet)
	}
	return err
}

// volumes is the folder below which kubelet mounts the volumes of a pod.
func (a attached) volumes(uid string) string { return path.Join(a.kubelet, "pods", uid, "volumes") }

// isThere reports whether attach would change nothing.
func (a attached) isThere(ctx context.Context) (bool, error) {
	pod, err := a.client.Pod(ctx, a.pod.Namespace, a.pod.Name())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil || pods.HasEnded(pod) || pod.DeletionTimestamp != nil {
		return false, err
	}
	c, err := a.client.Claim(ctx, a.pod.Namespace, a.pod.Claim)
	if err != nil {
		return false, err
	}
	return a.host.HasBindMount(ctx, a.volumes(string(pod.UID)), c.Spec.VolumeName, a.folder)
}

// checkIdle refuses to change what is mounted under a running machine: the host would unmount what virtiofsd has in a namespace of its
// own, and a machine that was started without the volume would go on with an empty folder.
func (a attached) checkIdle(ctx context.Context) error {
	uses, err := guard.Users(ctx, a.host.Key, a.host, volume.Image{Type: "dir", Name: a.folder, Binding: a.pod.Binding})
	for _, u := range uses {
		if u.Live {
			err = fmt.Errorf("%w: domain %[2]s on host %[3]s runs with what is mounted, or should be, at %[4]s. Shut it down first: virsh "+
				"shutdown %[2]s", guard.ErrInUse, u.Domain, u.Host, a.folder)
		}
	}
	return err
}

// unattach ends what attach has done on these hosts, unless the heir has it: what the binding, or the instance that replaces it, has now.
func (r *binding) unattach(ctx context.Context, state model, keys []string, heir volume.Image, diags *diag.Diagnostics) error {
	v, _, d := tfvalue.VolumeFrom(state.Volume)
	diags.Append(d...)
	if len(v.Images) > 0 && heir.Name == v.Images[0].Name {
		keys = leftHosts(keys, heir.Hosts)
	}
	all, err := r.attachedOn(ctx, state, v, keys, diags)
	for _, a := range all {
		err = errors.Join(err, a.remove(ctx))
	}
	return err
}

// remove unmounts the volume, and then removes the pod: Kubernetes detaches what nothing has mounted. The mount is kept for another
// binding on the same host; of two that end at once, the last finds no other.
func (a attached) remove(ctx context.Context) error {
	for range 2 {
		others, err := a.others(ctx)
		if err == nil && !others && a.host != nil {
			if err = a.checkIdle(ctx); err == nil {
				err = a.host.EndBindMount(ctx, a.folder)
			}
		}
		if err == nil {
			err = a.pod.Remove(ctx)
		}
		if err != nil || !others {
			return err
		}
	}
	return nil
}

// others reports whether another binding has the volume on the host.
func (a attached) others(ctx context.Context) (bool, error) {
	found, err := a.client.PodsUsing(ctx, a.pod.Namespace, a.pod.Claim)
	return slices.ContainsFunc(found, func(p cluster.PodUse) bool {
		return p.Holds && p.Node == a.pod.Node && p.Name != a.pod.Name()
	}), err
}

// refreshAttached checks whether each host has the volume. A host that does not answer keeps what is in state.
func (r *binding) refreshAttached(ctx context.Context, state *model, diags *diag.Diagnostics) {
	v, _, d := tfvalue.VolumeFrom(state.Volume)
	diags.Append(d...)
	all, err := r.attachedOn(ctx, *state, v, r.present(*state, state.hostKeys(ctx, diags), &diag.Diagnostics{}), diags)
	for _, a := range all {
		is, failed := a.isThere(ctx)
		if err = errors.Join(err, failed); failed == nil && !is {
			state.Attached = types.BoolValue(false)
			diags.AddAttributeWarning(attachPath, "The volume is not mounted", fmt.Sprintf("Host %s does not have the volume of binding "+
				"%s, or its pod %s/%s is gone, as after a restart of the host. An apply mounts it again; start no machine with it "+
				"before.", a.host.Key, state.Name.ValueString(), a.pod.Namespace, a.pod.Name()))
		}
	}
	if err != nil {
		diags.AddAttributeWarning(attachPath, "Whether the volume is mounted is not known", err.Error())
	}
}
