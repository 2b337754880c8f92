package dynamic

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

// fakeCluster has one pod and one Secret, and notes what is written.
type fakeCluster struct {
	pod    *corev1.Pod
	secret *corev1.Secret
	// becomes is the state of a pod that was made.
	becomes corev1.PodStatus
	wrote   []string
}

var notFound = apierrors.NewNotFound(corev1.Resource("pods"), "none")

func (f *fakeCluster) Pod(context.Context, string, string) (*corev1.Pod, error) {
	if f.pod == nil {
		return nil, notFound
	}
	return f.pod, nil
}

func (f *fakeCluster) CreatePod(_ context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	f.wrote = append(f.wrote, "create pod")
	f.pod = pod.DeepCopy()
	f.pod.Status = f.becomes
	return f.pod, nil
}

func (f *fakeCluster) DeletePod(context.Context, *corev1.Pod) error {
	f.wrote = append(f.wrote, "delete pod")
	f.pod = nil
	return nil
}

func (f *fakeCluster) WatchPod(_ context.Context, _, _ string, done func(*corev1.Pod) (bool, error)) error {
	if ok, err := done(f.pod); ok || err != nil {
		return err
	}
	return context.DeadlineExceeded
}
func (f *fakeCluster) LastPodEvent(context.Context, *corev1.Pod) string { return "said \x1b[2J" }
func (f *fakeCluster) LastLines(context.Context, string, string, string, int64) string {
	return "last\nlines"
}

func (f *fakeCluster) PodRequest(context.Context, string, string, string, int32, string, string, url.Values, http.Header, io.Reader) (*http.Response, error) {
	return nil, errors.New("not reached")
}

func (f *fakeCluster) Secret(context.Context, string, string) (*corev1.Secret, error) {
	if f.secret == nil {
		return nil, notFound
	}
	return f.secret, nil
}

func (f *fakeCluster) CreateSecret(_ context.Context, s *corev1.Secret) error {
	f.wrote = append(f.wrote, "create Secret")
	f.secret = s
	return nil
}

func (f *fakeCluster) DeleteSecret(context.Context, *corev1.Secret) error {
	f.wrote = append(f.wrote, "delete Secret")
	f.secret = nil
	return nil
}

var readyStatus = corev1.PodStatus{
	Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{ContainerID: "a"}},
	Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
}

func testPod(f *fakeCluster) Pod {
	return Pod{
		Cluster: f, Namespace: "vms", Binding: "id", BindingName: "data", Scheme: "https", Revision: "2",
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 8443}}}}}},
	}
}

func TestPod_Start(t *testing.T) {
	waits := corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
	}}}
	there := func(revision string, status corev1.PodStatus) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: testPod(nil).meta(), Status: status}
		p.Annotations[revisionAnnotation] = revision
		return p
	}
	secret := &corev1.Secret{ObjectMeta: testPod(nil).meta(), Data: map[string][]byte{tokenKey: []byte("a")}}
	newerPod := there("1", corev1.PodStatus{Phase: corev1.PodFailed})
	newerPod.Annotations[newer.Annotation] = "2"
	newerSecret := &corev1.Secret{ObjectMeta: *newerPod.ObjectMeta.DeepCopy(), Data: secret.Data}
	foreign := there("2", readyStatus)
	foreign.Labels = nil
	tests := map[string]struct {
		pod        *corev1.Pod
		secret     *corev1.Secret
		mayReplace bool
		wrote      string
		isNew      bool
		wrong      string
	}{
		"nothing":                    {wrote: "create Secret, create pod", isNew: true},
		"a Secret":                   {secret: secret, wrote: "create pod", isNew: true},
		"both":                       {pod: there("2", readyStatus), secret: secret},
		"never ran":                  {pod: there("1", waits), secret: secret, wrote: "delete pod, create pod", isNew: true},
		"evicted":                    {pod: there("2", corev1.PodStatus{Phase: corev1.PodFailed}), secret: secret, wrote: "delete pod, create pod"},
		"another revision":           {pod: there("1", readyStatus), secret: secret, wrong: "not now"},
		"another one that may go":    {pod: there("1", readyStatus), secret: secret, mayReplace: true, wrote: "delete pod, create pod"},
		"a Secret that is gone":      {pod: there("2", readyStatus), wrong: "not now"},
		"another pod of the name":    {pod: foreign, secret: secret, wrong: "was not made by virtclaim"},
		"another Secret of the name": {secret: &corev1.Secret{}, wrong: "was not made by virtclaim"},
		"a newer provider's pod":     {pod: newerPod, secret: secret, mayReplace: true, wrong: newer.Err.Error()},
		"a newer provider's Secret":  {pod: there("1", readyStatus), secret: newerSecret, mayReplace: true, wrong: newer.Err.Error()},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := &fakeCluster{pod: tt.pod, secret: tt.secret, becomes: readyStatus}
			isNew, err := testPod(f).Start(t.Context(), func() error {
				if tt.mayReplace {
					return nil
				}
				return errors.New("not now")
			})
			if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) || isNew != tt.isNew {
				t.Errorf("new: %v, %v", isNew, err)
			}
			if got := strings.Join(f.wrote, ", "); got != tt.wrote {
				t.Errorf("it did: %s", got)
			}
		})
	}
}

func TestPod_ExplainsFailure(t *testing.T) {
	f := &fakeCluster{becomes: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		ContainerID: "a", RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: "no disks"}},
	}}}}
	_, err := testPod(f).Start(t.Context(), nil)
	for _, want := range []string{"CrashLoopBackOff", "exit status 3", `"no disks"`, `"said \x1b[2J"`, `"last\nlines"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in: %v", want, err)
		}
	}
}

func TestPod_Spec(t *testing.T) {
	spec := testPod(nil).spec()
	c := spec.Containers[0]
	if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == podwire.SecretPath && m.ReadOnly }) ||
		c.ReadinessProbe.TCPSocket.Port.IntValue() != 8443 || spec.RestartPolicy != corev1.RestartPolicyAlways {
		t.Errorf("got %+v", spec)
	}
}

func TestPod_RemovesOnlyItsOwn(t *testing.T) {
	f := &fakeCluster{pod: &corev1.Pod{}, secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{BindingLabel: "other"}}}}
	if err := testPod(f).Remove(t.Context()); err != nil || len(f.wrote) > 0 {
		t.Errorf("%v %v", f.wrote, err)
	}
}
