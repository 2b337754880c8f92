package dynamic

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
)

// What the pod of a volume has.
const (
	// BindingLabel is the label of the pod and its Secret with the binding's id.
	BindingLabel = "virtclaim.io/binding"
	// revisionAnnotation distinguishes what a pod was made from.
	revisionAnnotation = "virtclaim.io/revision"
	// SecretPath is where the pod's Secret is mounted.
	SecretPath = "/var/run/virtclaim"
	container  = "volume"
)

// Cluster is the API server.
type Cluster interface {
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error)
	DeletePod(ctx context.Context, pod *corev1.Pod) error
	WatchPod(ctx context.Context, namespace, name string, done func(*corev1.Pod) (bool, error)) error
	LastPodEvent(ctx context.Context, pod *corev1.Pod) string
	LastLines(ctx context.Context, namespace, pod, container string, lines int64) string
	PodRequest(ctx context.Context, namespace, pod, scheme string, port int32, method, path string, query url.Values, header http.Header) (*http.Response, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	CreateSecret(ctx context.Context, s *corev1.Secret) error
	DeleteSecret(ctx context.Context, s *corev1.Secret) error
}

// Pod is the pod that makes one volume, and may serve it.
type Pod struct {
	Cluster   Cluster
	Namespace string
	// Binding is the id of the binding, BindingName its name for people.
	Binding, BindingName string
	// Scheme is http or https.
	Scheme string
	// Spec has one container, whose first port takes the requests.
	Spec corev1.PodSpec
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

func (p Pod) String() string { return "pod " + p.Namespace + "/" + p.Name() }

func (p Pod) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: p.Namespace, Name: p.Name(),
		Labels:      map[string]string{"app.kubernetes.io/managed-by": "virtclaim", BindingLabel: p.Binding},
		Annotations: map[string]string{"virtclaim.io/name": p.BindingName, revisionAnnotation: p.Revision},
	}
}

// Start makes the pod and its Secret where they are not there, and waits until the pod is ready. A pod that has ended, or whose container has
// never run, is replaced; so is one of another revision, or without its Secret, if mayReplace allows that. isNew is whether no pod can have made
// the volume before, also with an error.
func (p Pod) Start(ctx context.Context, mayReplace func() error) (isNew bool, err error) {
	hasSecret, err := p.hasSecret(ctx)
	if err != nil {
		return false, err
	}
	pod, err := p.Cluster.Pod(ctx, p.Namespace, p.Name())
	switch {
	case apierrors.IsNotFound(err):
		isNew, pod = true, nil
	case err != nil:
		return false, err
	case pod.Labels[BindingLabel] != p.Binding:
		return false, fmt.Errorf("the %s was not made by virtclaim. Remove it, or give the binding another name", p)
	case neverRan(pod):
		isNew = true
	case pod.DeletionTimestamp != nil, HasEnded(pod):
	case !hasSecret || p.Revision != "" && pod.Annotations[revisionAnnotation] != p.Revision:
		if err := mayReplace(); err != nil {
			return false, err
		}
	default:
		return false, p.awaitReady(ctx, pod)
	}
	if !hasSecret { // the token of a pod is that which it was started with
		if err := p.createSecret(ctx); err != nil {
			return isNew, err
		}
	}
	if pod, err = p.make(ctx, pod); err != nil {
		return isNew, err
	}
	return isNew, p.awaitReady(ctx, pod)
}

// make makes the pod, in the place of the one before, if there is one.
func (p Pod) make(ctx context.Context, before *corev1.Pod) (*corev1.Pod, error) {
	if before != nil {
		if err := p.Cluster.DeletePod(ctx, before); err != nil {
			return nil, err
		}
	}
	return p.Cluster.CreatePod(ctx, &corev1.Pod{ObjectMeta: p.meta(), Spec: p.spec()})
}

// spec is the configured one with what each pod has.
func (p Pod) spec() corev1.PodSpec {
	spec := *p.Spec.DeepCopy()
	c := &spec.Containers[0]
	c.Name = container
	c.Env = append([]corev1.EnvVar{
		fieldEnv("POD_IP", "status.podIP"), fieldEnv("HOST_IP", "status.hostIP"), fieldEnv("POD_NAME", "metadata.name"),
		fieldEnv("POD_NAMESPACE", "metadata.namespace"),
		{Name: "VIRTCLAIM_SECRET", Value: p.Name()},
	}, c.Env...)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "virtclaim", MountPath: SecretPath, ReadOnly: true})
	spec.Volumes = append(spec.Volumes, corev1.Volume{
		Name: "virtclaim", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: p.Name()}},
	})
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 2, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{
		Port: intstr.FromInt32(c.Ports[0].ContainerPort),
	}}}
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
	if err == nil && (s.Labels[BindingLabel] != p.Binding || len(s.Data[tokenKey]) == 0) {
		err = fmt.Errorf("the Secret %s/%s was not made by virtclaim, or was changed. Remove it, or give the binding another name", p.Namespace, p.Name())
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

// awaitReady waits until the pod is ready. The error of one that can't be has what Kubernetes and its container say.
func (p Pod) awaitReady(ctx context.Context, pod *corev1.Pod) error {
	last := pod
	err := p.Cluster.WatchPod(ctx, pod.Namespace, pod.Name, func(now *corev1.Pod) (bool, error) {
		last = now
		if HasEnded(now) {
			return false, fmt.Errorf("it has ended (%s): %s %q", now.Status.Phase, now.Status.Reason, now.Status.Message)
		}
		return IsReady(now), failure(now)
	})
	if err == nil {
		return nil
	}
	return p.explain(ctx, last, err)
}

func (p Pod) explain(ctx context.Context, pod *corev1.Pod, err error) error {
	ctx, cancel := revert.Context(ctx) // the operation's own may have ended
	defer cancel()
	err = fmt.Errorf("the %s is not ready: %w", p, err)
	if event := p.Cluster.LastPodEvent(ctx, pod); event != "" {
		err = fmt.Errorf("%w; its last event: %q", err, event)
	}
	if lines := p.Cluster.LastLines(ctx, pod.Namespace, pod.Name, container, 5); lines != "" {
		if s, failed := p.Cluster.Secret(ctx, p.Namespace, p.Name()); failed == nil {
			for _, key := range []string{tokenKey, passwordKey} {
				if value := string(s.Data[key]); value != "" {
					lines = strings.ReplaceAll(lines, value, "***")
				}
			}
		}
		err = fmt.Errorf("%w; its last lines: %.2000q", err, lines)
	}
	return err
}

// HasEnded is whether a pod does not run any more, as one that was evicted.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// neverRan is whether no container of the pod has run yet, so that it can't have made a volume.
func neverRan(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodPending && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.ContainerID != "" || c.RestartCount > 0 || c.LastTerminationState.Terminated != nil
	})
}

// IsReady is whether the pod takes requests.
func IsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// transient are the reasons of waiting containers that may pass. Kubernetes tries an image again before it says ImagePullBackOff.
var transient = []string{"ContainerCreating", "PodInitializing", "ErrImagePull"}

// failure is why a pod can't start, as far as that is known.
func failure(pod *corev1.Pod) error {
	for _, c := range pod.Status.ContainerStatuses {
		wait := c.State.Waiting
		if wait == nil || slices.Contains(transient, wait.Reason) || wait.Reason == "CrashLoopBackOff" && c.RestartCount < 2 {
			continue
		}
		err := fmt.Errorf("%s: %q", wait.Reason, wait.Message)
		if end := c.LastTerminationState.Terminated; end != nil {
			err = fmt.Errorf("%w; it ended with exit status %d (%s) %q", err, end.ExitCode, end.Reason, end.Message)
		}
		return err
	}
	return nil
}

// Server is the server in the pod, which must have been started.
func (p Pod) Server(ctx context.Context) (Server, error) {
	s, err := p.Cluster.Secret(ctx, p.Namespace, p.Name())
	if err != nil {
		return Server{}, err
	}
	port := p.Spec.Containers[0].Ports[0].ContainerPort
	return Server{
		Name: "the " + p.String(), Key: p.Binding, Namespace: p.Namespace,
		// The API server keeps the header Authorization for itself.
		Header: http.Header{"Virtclaim-Token": {string(s.Data[tokenKey])}},
		Call: func(ctx context.Context, method string, query url.Values, header http.Header) (*http.Response, error) {
			return p.Cluster.PodRequest(ctx, p.Namespace, p.Name(), p.Scheme, port, method, Path, query, header)
		},
	}, nil
}

// Remove removes the pod and its Secret.
func (p Pod) Remove(ctx context.Context) error {
	pod, err := p.Cluster.Pod(ctx, p.Namespace, p.Name())
	if err == nil && pod.Labels[BindingLabel] == p.Binding {
		err = p.Cluster.DeletePod(ctx, pod)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	s, err := p.Cluster.Secret(ctx, p.Namespace, p.Name())
	if err == nil && s.Labels[BindingLabel] == p.Binding {
		err = p.Cluster.DeleteSecret(ctx, s)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
