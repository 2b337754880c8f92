package dynamic

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/pods"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

// What the pod of a volume has.
const (
	// BindingLabel is the label of the pod and its Secret with the binding's id.
	BindingLabel = "virtclaim.io/binding"
	// revisionAnnotation distinguishes what a pod was made from.
	revisionAnnotation = "virtclaim.io/revision"
	// Container is the name of its container, and SecretVolume that of the pod's volume with the Secret.
	Container    = "volume"
	SecretVolume = "virtclaim"
)

// Pod is the pod that makes one volume, and may serve it.
type Pod struct {
	Cluster   pods.Cluster
	Namespace string
	// Binding is the id of the binding, BindingName its name for people.
	Binding, BindingName string
	// Scheme is http or https.
	Scheme string
	// Template has one container, whose first port takes the requests, and labels and annotations beside the pod's own.
	Template corev1.PodTemplateSpec
	// Revision distinguishes what the user has configured; with an empty one, any pod will do.
	Revision string
}

// RevisionOf is the revision of a configuration.
func RevisionOf(configuration string) string {
	sum := sha256.Sum256([]byte(configuration))
	return hex.EncodeToString(sum[:8])
}

// Name is that of the pod and of its Secret.
func (p Pod) Name() string { return "virtclaim-" + p.Binding }

func (p Pod) String() string { return p.managed().String() }

func (p Pod) managed() pods.Pod {
	return pods.Pod{
		Cluster: p.Cluster, Namespace: p.Namespace, Name: p.Name(), Label: BindingLabel, Owner: p.Binding, Container: Container,
		Confidential: []string{tokenKey, passwordKey},
	}
}

func (p Pod) meta() metav1.ObjectMeta {
	meta := p.managed().Meta()
	meta.Annotations = map[string]string{"virtclaim.io/name": p.BindingName, revisionAnnotation: p.Revision}
	return meta
}

// Start makes the pod and its Secret where they are not there, and waits until the pod is ready. A pod that has ended, or whose container
// has never run, is replaced; so is one of another revision, or without its Secret, if mayReplace allows that. isNew is whether no pod can
// have made the volume before, also with an error.
func (p Pod) Start(ctx context.Context, mayReplace func() error) (isNew bool, err error) {
	hasSecret, err := p.hasSecret(ctx)
	if err != nil {
		return false, err
	}
	pod, err := p.Cluster.Pod(ctx, p.Namespace, p.Name())
	if err == nil {
		err = p.managed().Check(pod)
	}
	switch {
	case apierrors.IsNotFound(err):
		isNew, pod = true, nil
	case err != nil:
		return false, err
	case !p.managed().Owns(pod):
		return false, fmt.Errorf("the %s was not made by virtclaim. Remove it, or give the binding another name", p)
	case neverRan(pod):
		isNew = true
	case pod.DeletionTimestamp != nil, pods.HasEnded(pod):
	case !hasSecret || p.Revision != "" && pod.Annotations[revisionAnnotation] != p.Revision:
		if err := mayReplace(); err != nil {
			return false, err
		}
	default:
		return false, p.managed().AwaitReady(ctx, pod)
	}
	if !hasSecret { // the token of a pod is that which it was started with
		if err := p.createSecret(ctx); err != nil {
			return isNew, err
		}
	}
	if pod, err = p.make(ctx, pod); err != nil {
		return isNew, err
	}
	return isNew, p.managed().AwaitReady(ctx, pod)
}

// HasNoNamespace is whether an error of Start proves that the pod's namespace is gone, or is being deleted: then nothing can be made in it.
func (p Pod) HasNoNamespace(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	of := status.Status().Details
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) ||
		apierrors.IsNotFound(err) && of != nil && of.Kind == "namespaces" && of.Name == p.Namespace
}

// make makes the pod, in the place of the one before, if there is one.
func (p Pod) make(ctx context.Context, before *corev1.Pod) (*corev1.Pod, error) {
	if before != nil {
		if err := p.Cluster.DeletePod(ctx, before); err != nil {
			return nil, err
		}
	}
	meta := p.meta()
	maps.Copy(meta.Labels, p.Template.Labels)
	maps.Copy(meta.Annotations, p.Template.Annotations)
	return p.Cluster.CreatePod(ctx, &corev1.Pod{ObjectMeta: meta, Spec: p.spec()})
}

// spec is the configured one with what each pod has.
func (p Pod) spec() corev1.PodSpec {
	spec := *p.Template.Spec.DeepCopy()
	c := &spec.Containers[0]
	c.Name = Container
	c.Env = append([]corev1.EnvVar{
		fieldEnv("POD_IP", "status.podIP"), fieldEnv("HOST_IP", "status.hostIP"), fieldEnv("POD_NAME", "metadata.name"),
		fieldEnv("POD_NAMESPACE", "metadata.namespace"),
		{Name: "VIRTCLAIM_SECRET", Value: p.Name()},
	}, c.Env...)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: SecretVolume, MountPath: podwire.SecretPath, ReadOnly: true})
	spec.Volumes = append(spec.Volumes, corev1.Volume{
		Name: SecretVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: p.Name()}},
	})
	if c.ReadinessProbe == nil {
		c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 2, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{
			Port: intstr.FromInt32(c.Ports[0].ContainerPort),
		}}}
	}
	spec.RestartPolicy = corev1.RestartPolicyAlways
	return spec
}

func fieldEnv(name, field string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}}}
}

// The keys of the pod's Secret.
const (
	tokenKey    = "token"
	userKey     = "node.session.auth.username"
	passwordKey = "node.session.auth.password"
)

// hasSecret is whether the Secret with the token of requests, and with credentials for iSCSI, is there.
func (p Pod) hasSecret(ctx context.Context) (bool, error) {
	s, err := p.Cluster.Secret(ctx, p.Namespace, p.Name())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err == nil {
		err = p.managed().Check(s)
	}
	if err == nil && (!p.managed().Owns(s) || len(s.Data[tokenKey]) == 0) {
		err = fmt.Errorf("the Secret %s/%s was not made by virtclaim, or was changed. Remove it, or give the binding another name",
			p.Namespace, p.Name())
	}
	return err == nil, err
}

func (p Pod) createSecret(ctx context.Context) error {
	meta := p.meta()
	delete(meta.Annotations, revisionAnnotation)
	return p.Cluster.CreateSecret(ctx, &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque, StringData: map[string]string{
		tokenKey: rand.Text(), userKey: "virtclaim", passwordKey: rand.Text()[:16], // some initiators take 12 to 16 bytes
	}})
}

// neverRan is whether no container of the pod has run yet, so that it can't have made a volume.
func neverRan(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodPending && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.ContainerID != "" || c.RestartCount > 0 || c.LastTerminationState.Terminated != nil
	})
}

// Server is the server in the pod, which must have been started.
func (p Pod) Server(ctx context.Context) (Server, error) {
	s, err := p.Cluster.Secret(ctx, p.Namespace, p.Name())
	if err != nil {
		return Server{}, err
	}
	port := p.Template.Spec.Containers[0].Ports[0].ContainerPort
	return Server{
		Name: "the " + p.String(), Key: p.Binding, Namespace: p.Namespace,
		Header: http.Header{podwire.TokenHeader: {string(s.Data[tokenKey])}},
		Call: func(ctx context.Context, method string, query url.Values, header http.Header) (*http.Response, error) {
			return p.Cluster.PodRequest(ctx, p.Namespace, p.Name(), p.Scheme, port, method, podwire.Path, query, header, http.NoBody)
		},
	}, nil
}

// Remove removes the pod and its Secret.
func (p Pod) Remove(ctx context.Context) error { return p.managed().Remove(ctx) }
