package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// logEnd is the number of lines of a container's log in an error.
const logEnd = 10

// AddPod creates a pod on the node, with its namespace, and waits until it is ready or, with a restart policy other than Always and without
// readiness probes, has succeeded. It returns the pod as it is then, with its address. The error of a pod that fails or can't start has its
// events and the ends of its logs; the pod stays. Unless the pod says otherwise, its processes get little time to end.
func (n *Node) AddPod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	if err := n.lab.AddNamespace(ctx, pod.Namespace); err != nil {
		return nil, err
	}
	pod = pod.DeepCopy()
	pod.Spec.NodeName = n.Name
	if soon := int64(1); pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = &soon
	}
	pod, err := n.lab.Cluster.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("make a pod: %w", err)
	}
	last, err := n.awaitSettled(ctx, pod)
	if err != nil {
		more := n.explain(context.WithoutCancel(ctx), last)
		return last, fmt.Errorf("the pod %s/%s is not ready (phase %s): %w%s", pod.Namespace, pod.Name, last.Status.Phase, err, more)
	}
	return last, nil
}

// RemovePod deletes a pod and waits until it is gone, with its mounts. One that is already gone is no error.
func (n *Node) RemovePod(ctx context.Context, namespace, name string) error {
	return n.lab.remove(ctx, object{"pods", namespace, name, n.lab.Cluster.Client.CoreV1().Pods(namespace).Delete})
}

// PodLog is what a container of a pod has printed; with an empty name, its only container.
func (n *Node) PodLog(ctx context.Context, namespace, name, container string) (string, error) {
	return n.podLog(ctx, namespace, name, &corev1.PodLogOptions{Container: container})
}

func (n *Node) podLog(ctx context.Context, namespace, name string, options *corev1.PodLogOptions) (string, error) {
	text, err := n.lab.Cluster.Client.CoreV1().Pods(namespace).GetLogs(name, options).DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("read the log of the pod %s/%s: %w", namespace, name, err)
	}
	return string(text), nil
}

// awaitSettled returns the pod when it is settled, or as it was seen last.
func (n *Node) awaitSettled(ctx context.Context, pod *corev1.Pod) (last *corev1.Pod, err error) {
	last = pod
	var failed error
	err = n.lab.await(ctx, object{resource: "pods", namespace: pod.Namespace, name: pod.Name}, nil, func(e watch.Event) (settled bool) {
		now, ok := e.Object.(*corev1.Pod)
		if !ok || now.UID != pod.UID {
			return false
		}
		last = now
		if e.Type == watch.Deleted {
			failed = errors.New("it was deleted")
			return true
		}
		settled, failed = isSettled(now)
		return settled
	})
	return last, errors.Join(err, failed)
}

// starting are the reasons of containers that wait for something that happens by itself.
var starting = []string{"", "ContainerCreating", "PodInitializing"}

// errCannotStart is that of a container about which kubelet has an event.
var errCannotStart = errors.New("it can't start")

// isSettled reports whether a pod is ready, has ended or can't start, and how it failed.
func isSettled(pod *corev1.Pod) (settled bool, failed error) {
	if pod.Status.Phase == corev1.PodSucceeded {
		return true, nil
	}
	if pod.Status.Phase == corev1.PodFailed {
		failed = fmt.Errorf("it has failed: %s", strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message))
		for _, c := range statuses(pod) {
			if end := c.State.Terminated; end != nil {
				failed = fmt.Errorf("%w\ncontainer %s: exit status %d (%s) %s", failed, c.Name, end.ExitCode, end.Reason, end.Message)
			}
		}
		return true, failed
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			probed := slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.ReadinessProbe != nil })
			return probed || pod.Spec.RestartPolicy == corev1.RestartPolicyAlways, nil
		}
	}
	for _, c := range statuses(pod) {
		if wait := c.State.Waiting; wait != nil && !slices.Contains(starting, wait.Reason) {
			return true, fmt.Errorf("%w: container %s: %s: %s", errCannotStart, c.Name, wait.Reason, wait.Message)
		}
	}
	return false, nil
}

func statuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// explain is what is known of a pod beside its status, in lines.
func (n *Node) explain(ctx context.Context, pod *corev1.Pod) string {
	var text strings.Builder
	of := fields.Set{"involvedObject.uid": string(pod.UID)}
	if _, failed := isSettled(pod); errors.Is(failed, errCannotStart) {
		// kubelet tells the status and the event at the same time.
		warning := fields.AndSelectors(of.AsSelector(), fields.OneTermEqualSelector("type", corev1.EventTypeWarning))
		if err := n.lab.awaitOneOf(ctx, "events", pod.Namespace, warning, nil, func(watch.Event) bool { return true }); err != nil {
			fmt.Fprintf(&text, "\nno event warns of it: %v", err)
		}
	}
	events, err := n.lab.Cluster.Client.CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: of.String()})
	if err != nil {
		fmt.Fprintf(&text, "\nits events are not known: %v", err)
		events = &corev1.EventList{}
	}
	for _, event := range events.Items {
		fmt.Fprintf(&text, "\nevent %s: %s", event.Reason, event.Message)
	}
	for _, c := range statuses(pod) {
		if c.ContainerID == "" {
			continue // it has no log
		}
		lines := int64(logEnd)
		log, err := n.podLog(ctx, pod.Namespace, pod.Name, &corev1.PodLogOptions{Container: c.Name, TailLines: &lines})
		if err != nil {
			log = err.Error()
		}
		fmt.Fprintf(&text, "\nlog of container %s: %s", c.Name, strings.TrimSpace(log))
	}
	return text.String()
}
