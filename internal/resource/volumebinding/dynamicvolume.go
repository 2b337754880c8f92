package volumebinding

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/pods"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/secret"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/dynamic"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// marker is written to the hosts of a volume that has no credentials: the secret says which instance of the binding the volume is of.
var marker = volume.Credentials{Type: "volume", Secret: []byte("none")}

// dynamicVolume makes and removes the volume of a binding with a dynamic source.
type dynamicVolume struct {
	*binding
	m    model
	from dynamicModel
	// pod is nil for a server.
	pod *dynamic.Pod
}

// dynamicVolume returns nil for other sources.
func (r *binding) dynamicVolume(ctx context.Context, m model, diags *diag.Diagnostics) (*dynamicVolume, error) {
	d := m.dynamic(ctx, diags)
	if d == nil {
		return nil, nil
	}
	k := &dynamicVolume{binding: r, m: m, from: *d}
	c := d.container(ctx, diags)
	if c == nil {
		return k, nil
	}
	client, err := r.Provider.Cluster()
	if err != nil {
		return nil, err
	}
	template, err := c.template(ctx, diags)
	if err != nil {
		return nil, err
	}
	scheme := c.Scheme.ValueString()
	if scheme == "" {
		scheme = "https"
	}
	k.pod = &dynamic.Pod{
		Cluster: client, Namespace: c.Namespace.ValueString(), Binding: m.ID.ValueString(), BindingName: m.Name.ValueString(),
		Scheme:   scheme,
		Template: template, Revision: dynamic.RevisionOf(d.Container.String()),
	}
	return k, nil
}

// server is the server, whose pod must have been started.
func (k *dynamicVolume) server(ctx context.Context, diags *diag.Diagnostics) (dynamic.Server, error) {
	if k.pod != nil {
		return k.pod.Server(ctx)
	}
	s := k.from.server(ctx, diags)
	if s == nil {
		return dynamic.Server{}, errors.New("the source has neither container nor server")
	}
	u := dynamic.URL{Address: s.URL.ValueString(), CA: []byte(s.CACertificate.ValueString())}
	if ref := secretRef(ctx, s.SecretRef, diags); ref != nil {
		client, err := k.Provider.Cluster()
		if err != nil {
			return dynamic.Server{}, err
		}
		if err := u.ReadSecret(ctx, client, *ref); err != nil {
			return dynamic.Server{}, err
		}
	}
	return u.Server(k.m.ID.ValueString(), s.Namespace.ValueString())
}

// create makes the volume of a new binding. undo removes only what the server says that it has made now, and no machine has. A volume that
// was there before is that of an apply that was interrupted. That of the instance which this one replaces is only looked for. actual is the
// volume once it is known.
func (k *dynamicVolume) create(ctx context.Context, own *privateState, actual *volume.Volume, undo *revert.Stack,
	diags *diag.Diagnostics,
) error {
	replaced, err := k.checkInstances(ctx, *own)
	if err != nil {
		return err
	}
	var isNewPod, isNew bool
	undo.Push(func(ctx context.Context) error {
		if isNew {
			err := k.checkVolumeUnused(ctx, *actual)
			if err == nil {
				err = k.removeVolume(ctx, diags)
			}
			if err != nil {
				return fmt.Errorf("the volume: %w", err)
			}
		}
		if !isNewPod {
			return nil
		}
		return k.pod.Remove(ctx)
	})
	if k.pod != nil {
		if isNewPod, err = k.pod.Start(ctx, func() error { return k.other() }); err != nil {
			return err
		}
	}
	server, err := k.server(ctx, diags)
	if err != nil {
		return err
	}
	var answer dynamic.Answer
	if answer, isNew, err = k.ask(ctx, server, replaced, diags); err == nil {
		own.Answer = &answer
	}
	return err
}

// ask has the volume made. That of an instance which is replaced must be there, and is never new.
func (k *dynamicVolume) ask(ctx context.Context, s dynamic.Server, replaced *secret.Record,
	diags *diag.Diagnostics,
) (a dynamic.Answer, isNew bool, err error) {
	if replaced == nil {
		return s.Make(ctx, textsByName(ctx, k.from.Parameters, diags))
	}
	if a, err = k.find(ctx, s, replaced.Volume, diags); errors.Is(err, dynamic.ErrLost) {
		err = fmt.Errorf("%s: %w. With create_before_destroy a new instance of the binding takes the volume over: remove that, or rename "+
			"the binding. If there is no former instance any more, run on its hosts: virsh secret-undefine %s", s.Name, err,
			k.m.ID.ValueString())
	}
	return a, false, err
}

// find asks where a volume is that was made before, and has the fingerprint known.
func (k *dynamicVolume) find(ctx context.Context, server dynamic.Server, known string, diags *diag.Diagnostics) (dynamic.Answer, error) {
	answer, isNew, err := server.Find(ctx, textsByName(ctx, k.from.Parameters, diags), known)
	if err == nil && isNew {
		summary := fmt.Sprintf("Whether binding %s has its former volume is not proven", k.m.Name.ValueString())
		diags.AddAttributeWarning(sourcePath.AtName(dynamicSource), summary, fmt.Sprintf("Asked to make none (If-Match), %s says that it "+
			"has made the volume now (201), where the former one was. Nothing is removed. Look whether the data is there, and have it "+
			"answer 200.", server.Name))
	}
	return answer, err
}

// other is the error of a pod that was made for another configuration. Whether a state has its volume is not known.
func (k *dynamicVolume) other() error {
	return fmt.Errorf("the %s was made with another configuration of this binding, or has lost its Secret. With "+
		"create_before_destroy, give the new binding another name. If an interrupted apply left it, apply once more with what it was "+
		"made with, or remove the volume by hand, and then: kubectl delete pod --namespace %s %s",
		k.pod, k.pod.Namespace, k.pod.Name())
}

// update makes sure that the pod runs as configured, asks again where the volume is, and has it grow if it was resized.
func (k *dynamicVolume) update(ctx context.Context, state model, resized bool, own *privateState, diags *diag.Diagnostics) error {
	if k.pod != nil {
		if _, err := k.pod.Start(ctx, func() error { return k.checkStopped(ctx, state, diags) }); err != nil {
			return err
		}
	}
	server, err := k.server(ctx, diags)
	if err != nil {
		return err
	}
	answer, err := k.find(ctx, server, own.Answer.Fingerprint(), diags)
	if errors.Is(err, dynamic.ErrLost) {
		return fmt.Errorf("%s: %w. Put it back, or go on with an empty one: terraform apply -replace=<address of this resource>",
			server.Name, err)
	}
	if resized && errors.Is(err, dynamic.ErrRefused) {
		return fmt.Errorf("%w. The volume does not grow there, and nothing was changed. Set the former size, or make another volume, "+
			"which loses all data of this one: terraform apply -replace=<address of this resource>", err)
	}
	if err == nil {
		err = k.checkSameClaim(*own, answer)
	}
	if planned := own.moved(); err == nil && !k.m.Volume.IsUnknown() && answer.Fingerprint() != planned.Answer.Fingerprint() {
		err = fmt.Errorf("%s has another answer than before the plan. Nothing was changed. Plan and apply again", server.Name)
	}
	if err == nil {
		own.Answer, own.Moved, own.PodLost = &answer, nil, false
	}
	return err
}

// checkSameClaim refuses another claim: the former one would stay reserved.
func (k *dynamicVolume) checkSameClaim(own privateState, is dynamic.Answer) error {
	was := own.Answer
	if was == nil || was.Claim == is.Claim && was.Namespace == is.Namespace {
		return nil
	}
	return fmt.Errorf("binding %s has the claim %q of the server, which names %q now (empty: storage without a claim). Have it answer as "+
		"before, or make another volume: terraform apply -replace=<address of this resource>", k.m.Name.ValueString(), was.Claim, is.Claim)
}

// refresh asks where the volume is. What can't be told is a warning: the plan goes on with what is known.
func (k *dynamicVolume) refresh(ctx context.Context, own *privateState, diags *diag.Diagnostics) {
	if own.Moved = nil; own.Answer == nil {
		return
	}
	patient, cancel := context.WithTimeoutCause(ctx, openTime, fmt.Errorf("no answer within %s", openTime))
	defer cancel()
	server, err := k.server(patient, diags)
	var answer dynamic.Answer
	if err == nil {
		answer, err = k.find(patient, server, own.Answer.Fingerprint(), diags)
	}
	if err == nil {
		err = k.checkSameClaim(*own, answer)
	}
	if err != nil {
		diags.AddAttributeWarning(sourcePath.AtName(dynamicSource), fmt.Sprintf("Where the volume of binding %s is, is not known",
			k.m.Name.ValueString()), fmt.Sprintf("%s. The plan goes on with what was known before.", err))
	} else if answer.Fingerprint() != own.Answer.Fingerprint() {
		own.Moved = &answer
	}
}

// checkStopped refuses to make the pod again while machines run with its volume.
func (k *dynamicVolume) checkStopped(ctx context.Context, state model, diags *diag.Diagnostics) error {
	v, known, d := tfvalue.VolumeFrom(state.Volume)
	if diags.Append(d...); !known {
		return nil
	}
	uses, err := k.uses(ctx, v.Images[0], v.Images[0].Hosts)
	for _, u := range uses {
		if u.Live {
			err = errors.Join(err, fmt.Errorf("%w: the %s has to be made again, and domain %s on host %s runs with its volume: stop it "+
				"before, or leave the container as it is", guard.ErrInUse, k.pod, u.Domain, u.Host))
		}
	}
	return err
}

// remove removes the volume, and then the pod, unless anything may still need the volume: any machine of any host, and another instance of
// the binding. A pod that is gone is made again to remove the volume: what it made may still be there.
func (k *dynamicVolume) remove(ctx context.Context, state model, own privateState, diags *diag.Diagnostics) error {
	v, known, d := tfvalue.VolumeFrom(state.Volume)
	diags.Append(d...)
	if now, ok := k.Provider.LookupBinding(state.ID.ValueString()); ok && known && sameUnit(now, v.Images[0]) {
		return nil // this apply has given it to the instance that replaces this one
	}
	others, err := k.instances(ctx, own, func(string) bool { return true })
	if err == nil && len(others) > 0 {
		diags.AddWarning("The volume is left to another instance of the binding", fmt.Sprintf("The secret of binding %s on host %s is "+
			"that of another instance, which has replaced this one, or is in another state. The volume is removed with that if its "+
			"source is dynamic, too; otherwise remove it by hand.", state.Name.ValueString(), others[0].host))
		return nil
	}
	if err == nil {
		err = k.checkUnused(ctx, state, diags)
	}
	if err != nil {
		return err
	}
	if k.pod != nil {
		k.pod.Revision = "" // any will do
		_, err := k.pod.Start(ctx, func() error { return nil })
		if k.pod.HasNoNamespace(err) {
			diags.AddWarning(fmt.Sprintf("The volume of binding %s may be left", state.Name.ValueString()), fmt.Sprintf("The namespace "+
				"%s is gone, or being deleted: no pod can remove the volume, and the binding ends without. Remove by hand what it kept "+
				"elsewhere.", k.pod.Namespace))
			return nil
		}
		if err != nil {
			return err
		}
	}
	if err := k.removeVolume(ctx, diags); err != nil || k.pod == nil {
		return err
	}
	return k.pod.Remove(ctx)
}

// checkUnused refuses to remove a volume that any machine has, also by another binding.
func (k *dynamicVolume) checkUnused(ctx context.Context, state model, diags *diag.Diagnostics) error {
	for _, key := range state.hostKeys(ctx, diags) {
		if _, err := k.Provider.Hosts.Host(key); err != nil {
			return fmt.Errorf("whether a machine of host %s has the volume is not known: %w. Configure it again, or take the host off "+
				"the binding in an apply before", key, err)
		}
	}
	v, _, d := tfvalue.VolumeFrom(state.Volume)
	diags.Append(d...)
	return k.checkVolumeUnused(ctx, v)
}

func (k *dynamicVolume) checkVolumeUnused(ctx context.Context, v volume.Volume) error {
	if len(v.Images) == 0 { // it was never bound
		return nil
	}
	keys := v.Images[0].Hosts
	if v.Images[0].Type == "network" { // any host may reach it
		keys = k.Provider.Hosts.Keys()
	}
	uses, err := k.uses(ctx, v.Images[0], keys)
	for _, u := range uses {
		err = errors.Join(err, fmt.Errorf("%w: domain %s on host %s has the volume, by another binding. Take it away there first",
			guard.ErrInUse, u.Domain, u.Host))
	}
	return err
}

func (k *dynamicVolume) removeVolume(ctx context.Context, diags *diag.Diagnostics) error {
	server, err := k.server(ctx, diags)
	if err == nil {
		err = server.Remove(ctx)
	}
	return err
}

// refreshDynamic looks whether the pod is there, which an update makes again, and asks it or the server where the volume is.
func (r *binding) refreshDynamic(ctx context.Context, state model, own *privateState, diags *diag.Diagnostics) {
	k, err := r.dynamicVolume(ctx, state, diags)
	if err != nil || k == nil {
		addSourceError(diags, "The binding could not be read", sourcePath.AtName(dynamicSource), err)
		return
	}
	if k.pod == nil {
		k.refresh(ctx, own, diags)
		return
	}
	pod, err := k.pod.Cluster.Pod(ctx, k.pod.Namespace, k.pod.Name())
	at, summary := sourcePath.AtName(dynamicSource).AtName("container"), "The pod of the volume does not run"
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		addSourceError(diags, "The binding could not be read", at, err)
	case err != nil || pods.HasEnded(pod) || pod.DeletionTimestamp != nil:
		own.PodLost = true
		diags.AddAttributeWarning(at, summary, fmt.Sprintf("The %s of the binding %s is gone, or has ended. An apply makes it again; "+
			"machines that run with the volume may have to be restarted then, because its address may be another one.", k.pod,
			state.Name.ValueString()))
	default:
		own.PodLost = false
		if !pods.IsReady(pod) {
			diags.AddAttributeWarning(at, summary, fmt.Sprintf("The %s of the binding %s is not ready.", k.pod, state.Name.ValueString()))
			return
		}
		k.refresh(ctx, own, diags)
	}
}

// restarts is whether an update makes the pod again, or has to ask where the volume is.
func (d dynamicModel) restarts(ctx context.Context, state model, own privateState, diags *diag.Diagnostics) bool {
	was := state.dynamic(ctx, diags)
	return own.PodLost || own.Answer == nil || was == nil || !d.Container.Equal(was.Container) || !d.Server.Equal(was.Server) ||
		!d.Parameters.Equal(was.Parameters)
}

// lockDynamic has Create and Delete of a dynamic source's volume run one after the other, if two instances of the binding have it.
func (r *binding) lockDynamic(ctx context.Context, m model) (unlock func()) {
	var diags diag.Diagnostics
	if m.dynamic(ctx, &diags) == nil {
		return func() {}
	}
	return r.Provider.LockBinding(m.ID.ValueString())
}
