package lab

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestIsSettled(t *testing.T) {
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	waiting := func(reason, message string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
		}}}
	}
	ended := []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"},
	}}}
	for name, test := range map[string]struct {
		policy  corev1.RestartPolicy
		status  corev1.PodStatus
		settled bool
		failed  string
	}{
		"new":                      {policy: corev1.RestartPolicyAlways},
		"ready":                    {corev1.RestartPolicyAlways, corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready}, true, ""},
		"ready, but meant to end":  {policy: corev1.RestartPolicyNever, status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready}},
		"succeeded":                {corev1.RestartPolicyNever, corev1.PodStatus{Phase: corev1.PodSucceeded}, true, ""},
		"failed":                   {corev1.RestartPolicyNever, corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: ended}, true, "exit status 3 (Error)"},
		"evicted":                  {corev1.RestartPolicyAlways, corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "disk"}, true, "Evicted disk"},
		"being created":            {policy: corev1.RestartPolicyAlways, status: corev1.PodStatus{ContainerStatuses: waiting("ContainerCreating", "")}},
		"no image":                 {corev1.RestartPolicyAlways, corev1.PodStatus{ContainerStatuses: waiting("ErrImagePull", "not found")}, true, "ErrImagePull: not found"},
		"no image to begin with":   {corev1.RestartPolicyAlways, corev1.PodStatus{InitContainerStatuses: waiting("ErrImagePull", "not found")}, true, "main"},
		"begins with another one":  {policy: corev1.RestartPolicyAlways, status: corev1.PodStatus{ContainerStatuses: waiting("PodInitializing", "")}},
		"ended, will be restarted": {policy: corev1.RestartPolicyAlways, status: corev1.PodStatus{ContainerStatuses: ended}},
	} {
		t.Run(name, func(t *testing.T) {
			settled, err := isSettled(&corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: test.policy}, Status: test.status})
			if settled != test.settled || (err != nil) != (test.failed != "") {
				t.Fatalf("settled: %v, %v", settled, err)
			}
			if err != nil && !strings.Contains(err.Error(), test.failed) {
				t.Errorf("the error does not have %q: %v", test.failed, err)
			}
		})
	}
}
