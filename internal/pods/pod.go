// Package pods has the life cycle of a pod that virtclaim makes, and of its Secret; and fills claims by such pods. It knows neither libvirt
// nor Terraform.
package pods

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
)

// Cluster is the API server.
type Cluster interface {
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error)
	DeletePod(ctx context.Context, pod *corev1.Pod) error
	WatchPod(ctx context.Context, namespace, name string, done func(*corev1.Pod) (bool, error)) error
	LastPodEvent(ctx context.Context, pod *corev1.Pod) string
	LastLines(ctx context.Context, namespace, pod, container string, lines int64) string
	PodRequest(ctx context.Context, namespace, pod, scheme string, port int32, method, path string, query url.Values, header http.Header,
		body io.Reader) (*http.Response, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	CreateSecret(ctx context.Context, s *corev1.Secret) error
	DeleteSecret(ctx context.Context, s *corev1.Secret) error
}

// Pod is a pod, which has one container, and its Secret of the same name.
type Pod struct {
	Cluster         Cluster
	Namespace, Name string
	// Label is the label that both have, and Owner its value. An object without them is left alone.
	Label, Owner string
	// Container is the name of the container.
	Container string
	// Confidential are the keys of the Secret whose values are in no error; without any, the pod has no Secret.
	Confidential []string
}

func (p Pod) String() string { return "pod " + p.Namespace + "/" + p.Name }

// Meta is what the pod and its Secret have in common.
func (p Pod) Meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: p.Namespace, Name: p.Name, Labels: map[string]string{"app.kubernetes.io/managed-by": "virtclaim", p.Label: p.Owner},
	}
}

// Owns is whether an object has the pod's label.
func (p Pod) Owns(o metav1.Object) bool { return o.GetLabels()[p.Label] == p.Owner }

// Check is newer.Err for an object with the pod's label that a newer provider has made.
func (p Pod) Check(o metav1.Object) error {
	err := newer.Version(o.GetAnnotations()[newer.Annotation])
	if err == nil || !p.Owns(o) {
		return nil
	}
	return fmt.Errorf("the %s, or its Secret, can't be read: %w", p, err)
}

// AwaitReady waits until the pod is ready. The error of one that can't be has what Kubernetes and its container say.
func (p Pod) AwaitReady(ctx context.Context, pod *corev1.Pod) error {
	return p.await(ctx, pod, "is not ready", func(now *corev1.Pod) (bool, error) {
		if HasEnded(now) {
			return false, ended(now)
		}
		return IsReady(now), nil
	})
}

// AwaitSuccess waits until the pod has succeeded, and returns the termination message of its container. Its errors are like those of
// AwaitReady.
func (p Pod) AwaitSuccess(ctx context.Context, pod *corev1.Pod) (said string, err error) {
	err = p.await(ctx, pod, "has not succeeded", func(now *corev1.Pod) (bool, error) {
		if now.Status.Phase == corev1.PodFailed {
			return false, ended(now)
		}
		for _, c := range now.Status.ContainerStatuses {
			if end := c.State.Terminated; end != nil {
				said = end.Message
			}
		}
		return now.Status.Phase == corev1.PodSucceeded, nil
	})
	return said, err
}

// await waits until a pod is as wanted; what it is otherwise begins the error.
func (p Pod) await(ctx context.Context, pod *corev1.Pod, otherwise string, done func(*corev1.Pod) (bool, error)) error {
	last := pod
	err := p.Cluster.WatchPod(ctx, pod.Namespace, pod.Name, func(now *corev1.Pod) (bool, error) {
		last = now
		if is, err := done(now); is || err != nil {
			return is, err
		}
		return false, failure(now)
	})
	if err == nil {
		return nil
	}
	return p.Explain(ctx, last, fmt.Errorf("the %s %s: %w", p, otherwise, err))
}

// Explain adds the pod's last event, and the last lines of its container, to an error.
func (p Pod) Explain(ctx context.Context, pod *corev1.Pod, err error) error {
	ctx, cancel := revert.Context(ctx) // the operation's own may have ended
	defer cancel()
	if event := p.Cluster.LastPodEvent(ctx, pod); event != "" {
		err = fmt.Errorf("%w; its last event: %q", err, event)
	}
	if lines := p.Cluster.LastLines(ctx, pod.Namespace, pod.Name, p.Container, 5); lines != "" {
		for _, key := range p.Confidential {
			s, failed := p.Cluster.Secret(ctx, p.Namespace, p.Name)
			if failed == nil && len(s.Data[key]) > 0 {
				lines = strings.ReplaceAll(lines, string(s.Data[key]), "***")
			}
		}
		err = fmt.Errorf("%w; its last lines: %.2000q", err, lines)
	}
	return err
}

// Remove removes the pod and its Secret, if it has one, and waits until the container has ended.
func (p Pod) Remove(ctx context.Context) error {
	pod, err := p.Cluster.Pod(ctx, p.Namespace, p.Name)
	if err == nil {
		err = p.Check(pod)
	}
	if err == nil && p.Owns(pod) {
		err = p.Cluster.DeletePod(ctx, pod)
	}
	if apierrors.IsNotFound(err) {
		err = nil
	}
	if err != nil || len(p.Confidential) == 0 {
		return err
	}
	s, err := p.Cluster.Secret(ctx, p.Namespace, p.Name)
	if err == nil {
		err = p.Check(s)
	}
	if err == nil && p.Owns(s) {
		err = p.Cluster.DeleteSecret(ctx, s)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// HasEnded is whether a pod does not run any more, as one that was evicted.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// IsReady is whether the pod takes requests.
func IsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func ended(pod *corev1.Pod) error {
	err := fmt.Errorf("it has ended (%s): %s %q", pod.Status.Phase, pod.Status.Reason, pod.Status.Message)
	for _, c := range pod.Status.ContainerStatuses {
		err = exited(err, c.State.Terminated)
	}
	return err
}

// exited adds how a container has ended to an error.
func exited(err error, end *corev1.ContainerStateTerminated) error {
	if end == nil {
		return err
	}
	return fmt.Errorf("%w; it ended with %w", err, &ExitError{end})
}

// ExitError is how a container has ended.
type ExitError struct {
	*corev1.ContainerStateTerminated
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("exit status %d (%s) %q", e.ExitCode, e.Reason, e.Message)
}

// transient are the reasons of waiting containers that may pass. Kubernetes tries an image again before it says ImagePullBackOff.
var transient = []string{"ContainerCreating", "PodInitializing", "ErrImagePull"}

// failure is why a pod can't start, as far as that is known.
func failure(pod *corev1.Pod) error {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		wait := c.State.Waiting
		if wait == nil || slices.Contains(transient, wait.Reason) || wait.Reason == "CrashLoopBackOff" && c.RestartCount < 2 {
			continue
		}
		return exited(fmt.Errorf("%s: %q", wait.Reason, wait.Message), c.LastTerminationState.Terminated)
	}
	return nil
}
