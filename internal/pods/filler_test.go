package pods

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

// fakeCluster has one pod and one Secret, and notes what is done.
type fakeCluster struct {
	pod    *corev1.Pod
	secret *corev1.Secret
	// becomes is the state of a pod that was made.
	becomes corev1.PodStatus
	// put answers a request.
	put func(token string, body io.Reader) (*http.Response, error)
	did []string
	// state is that of the claim.
	state string
	// wrong fails what is done after the context was canceled.
	wrong error
}

var notFound = apierrors.NewNotFound(corev1.Resource("pods"), "none")

func (f *fakeCluster) do(ctx context.Context, what string) {
	f.did = append(f.did, what)
	f.wrong = errors.Join(f.wrong, ctx.Err())
}

func (f *fakeCluster) Pod(context.Context, string, string) (*corev1.Pod, error) {
	if f.pod == nil {
		return nil, notFound
	}
	return f.pod, nil
}

func (f *fakeCluster) CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	f.do(ctx, "create pod")
	f.pod = pod.DeepCopy()
	f.pod.Status = f.becomes
	return f.pod, nil
}

func (f *fakeCluster) DeletePod(ctx context.Context, _ *corev1.Pod) error {
	f.do(ctx, "delete pod")
	f.pod = nil
	return nil
}

func (f *fakeCluster) WatchPod(ctx context.Context, _, _ string, done func(*corev1.Pod) (bool, error)) error {
	if ok, err := done(f.pod); ok || err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}
func (f *fakeCluster) LastPodEvent(context.Context, *corev1.Pod) string { return "said \x1b[2J" }
func (f *fakeCluster) LastLines(context.Context, string, string, string, int64) string {
	if f.secret == nil {
		return "last\nlines"
	}
	return "last\nlines of " + string(f.secret.Data["token"])
}

func (f *fakeCluster) PodRequest(ctx context.Context, namespace, pod, scheme string, port int32, method, path string, _ url.Values, header http.Header, body io.Reader) (*http.Response, error) {
	f.do(ctx, fmt.Sprint(method, " ", scheme, " ", namespace, "/", pod, ":", port, path))
	if method == http.MethodGet {
		return answer(http.StatusOK, `{"state":"`+f.state+`","error":"it has a GPT partition table"}`), nil
	}
	return f.put(header.Get("Virtclaim-Token"), body)
}

func (f *fakeCluster) Secret(context.Context, string, string) (*corev1.Secret, error) {
	if f.secret == nil {
		return nil, notFound
	}
	return f.secret, nil
}

func (f *fakeCluster) CreateSecret(ctx context.Context, s *corev1.Secret) error {
	f.do(ctx, "create Secret")
	f.secret = s.DeepCopy()
	f.secret.Data = map[string][]byte{"token": []byte(s.StringData["token"])}
	return nil
}

func (f *fakeCluster) DeleteSecret(ctx context.Context, _ *corev1.Secret) error {
	f.do(ctx, "delete Secret")
	f.secret = nil
	return nil
}

var ready = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}

// terminated is the state of a pod whose container has ended.
func terminated(phase corev1.PodPhase, code int32, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Reason", Message: message},
	}}}}
}

func testFiller(f *fakeCluster) Filler {
	return Filler{Cluster: f, Namespace: "vms", Claim: "data", Image: "ghcr.io/virtclaim/virtclaim-volume:0.1.0", ID: "id"}
}

func answer(status int, text string) *http.Response {
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(text))}
}

const filled = `{"state":"filled","format":"qcow2","capacity":1048576,"digest":"sha256:00","bytes":1048576}`

var isFilled = podwire.Filled{Format: "qcow2", Capacity: 1 << 20, Digest: "sha256:00"}

func open(r io.Reader) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) { return io.NopCloser(r), nil }
}

// uploaded are the steps of an upload.
var uploaded = []string{"create Secret", "create pod", "GET https vms/virtclaim-id:8443/volume", "PUT https vms/virtclaim-id:8443/volume", "delete pod", "delete Secret"}

func TestPod_Upload(t *testing.T) {
	var got []byte
	f := &fakeCluster{becomes: ready, state: "empty"}
	f.put = func(token string, body io.Reader) (*http.Response, error) {
		if token == "" || token != string(f.secret.Data["token"]) {
			t.Errorf("the token is %q", token)
		}
		got, _ = io.ReadAll(body)
		return answer(http.StatusCreated, filled), nil
	}
	image, done := bytes.Repeat([]byte("image "), 1000), int64(0)
	is, err := testFiller(f).Upload(t.Context(), open(bytes.NewReader(image)), func(n int64) { done = n })
	if err != nil || is != isFilled || !bytes.Equal(got, image) || done != int64(len(image)) {
		t.Errorf("%v, %+v, got %d bytes, reported %d", err, is, len(got), done)
	}
	if diff := cmp.Diff(uploaded, f.did); diff != "" {
		t.Error(diff)
	}
}

// A claim with content is refused before the image is fetched, unless it may be overwritten.
func TestPod_CheckUnused(t *testing.T) {
	for state, want := range map[string]string{"empty": "", "incomplete": "", "filled": "it has a GPT partition table", "": "this version of the provider"} {
		opened := false
		use := func(p Filler) error {
			_, err := p.Upload(t.Context(), func(context.Context) (io.ReadCloser, error) {
				opened = true
				return nil, io.EOF
			}, nil)
			return err
		}
		for name, check := range map[string]func(Filler) error{"upload": use, "alone": func(p Filler) error { return p.CheckUnused(t.Context()) }} {
			f := &fakeCluster{becomes: ready, state: state}
			err := check(testFiller(f))
			if isUsed := errors.Is(err, ErrHasContent); isUsed != (state == "filled") || want != "" && !strings.Contains(err.Error(), want) || f.pod != nil || f.secret != nil {
				t.Errorf("%s of %q: %v", name, state, err)
			}
		}
		if opened != (want == "") {
			t.Errorf("%q: the image was opened: %t", state, opened)
		}
		p := testFiller(&fakeCluster{becomes: ready, state: state})
		if p.Overwrite = true; !errors.Is(use(p), io.EOF) || !opened {
			t.Errorf("%q is not overwritten", state)
		}
	}
}

// What can't be filled is explained without the token, and leaves nothing.
func TestPod_UploadFails(t *testing.T) {
	broken := errors.New("the download was cut")
	for name, tt := range map[string]struct {
		becomes corev1.PodStatus
		image   io.Reader
		put     func(token string, body io.Reader) (*http.Response, error)
		want    []string
	}{
		"refused": {ready, strings.NewReader("x"), func(token string, _ io.Reader) (*http.Response, error) {
			return answer(http.StatusConflict, `{"error":"it has \u001b a GPT partition table `+token+`","bytes":0}`), nil
		}, []string{"pod vms/virtclaim-id has not filled the claim", `409 Conflict: "it has \x1b a GPT partition table ***"`}},
		"not reached": {ready, strings.NewReader("x"), func(string, io.Reader) (*http.Response, error) {
			return answer(http.StatusServiceUnavailable, `{"kind":"Status","message":"no route"}`), nil
		}, []string{`503 Service Unavailable: "no route"`}},
		"a page": {ready, strings.NewReader("x"), func(string, io.Reader) (*http.Response, error) {
			return answer(http.StatusBadGateway, "<p>"+strings.Repeat("long", 1000)), nil
		}, []string{`502 Bad Gateway: "<p>longlong`}},
		"an answer of something else": {ready, strings.NewReader("x"), func(string, io.Reader) (*http.Response, error) {
			return answer(http.StatusCreated, "{}"), nil
		}, []string{"does not say"}},
		"cut": {ready, strings.NewReader("x"), func(string, io.Reader) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }, []string{"unexpected EOF"}},
		"no image": {ready, io.MultiReader(strings.NewReader("x"), errReader{broken}), func(_ string, body io.Reader) (*http.Response, error) {
			_, _ = io.ReadAll(body)
			return answer(http.StatusBadRequest, `{"error":"the connection ended"}`), nil
		}, []string{"the download was cut"}},
		"ended": {
			terminated(corev1.PodFailed, 1, "no such device"), nil, nil,
			[]string{"pod vms/virtclaim-id is not ready", "exit status 1", `"no such device"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeCluster{becomes: tt.becomes, put: tt.put, state: "empty"}
			is, err := testFiller(f).Upload(t.Context(), open(tt.image), nil)
			for _, want := range append(tt.want, `its last event: "said \x1b[2J"`, `its last lines: "last\nlines of ***"`) {
				if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 2000 {
					t.Errorf("%s is not in: %v", want, err)
				}
			}
			if f.pod != nil || f.secret != nil || is.Digest != "" {
				t.Errorf("left are %v and %v; filled: %+v", f.pod, f.secret, is)
			}
		})
	}
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

func TestPod_CanceledLeavesNothing(t *testing.T) {
	f := &fakeCluster{becomes: corev1.PodStatus{Phase: corev1.PodPending}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := testFiller(f).Erase(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"create pod", "delete pod"}, f.did); diff != "" || f.pod != nil {
		t.Errorf("%v is left: %s", f.pod, diff)
	}
	if got := fmt.Sprint(f.wrong); got != "context canceled" { // the creation alone
		t.Errorf("the context of its removal: %s", got)
	}
}

func TestPod_Copy(t *testing.T) {
	f := &fakeCluster{becomes: terminated(corev1.PodSucceeded, 0, filled)}
	var args []string
	p := testFiller(f)
	p.Cluster = created{f, func(pod *corev1.Pod) { args = pod.Spec.Containers[0].Args }}
	if is, err := p.Copy(t.Context(), "quay.io/disks/debian:13", "/a.img"); err != nil || is != isFilled {
		t.Errorf("%v, %+v", err, is)
	}
	if diff := cmp.Diff([]string{"copy", "-scratch=/scratch", "-path=/a.img", "--", "quay.io/disks/debian:13"}, args); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"create pod", "delete pod"}, f.did); diff != "" {
		t.Error(diff)
	}
	f.becomes = terminated(corev1.PodFailed, 1, "the registry refused it")
	_, err := testFiller(f).Copy(t.Context(), "quay.io/disks/debian:13", "")
	for _, want := range []string{"pod vms/virtclaim-id has not succeeded", "exit status 1", `"the registry refused it"`, `"last\nlines"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in: %v", want, err)
		}
	}
	f.becomes = terminated(corev1.PodSucceeded, 0, "filled with 3 bytes")
	if _, err := testFiller(f).Copy(t.Context(), "quay.io/disks/debian:13", ""); err == nil || !strings.Contains(err.Error(), "this version") || f.pod != nil {
		t.Errorf("another version: %v", err)
	}
}

// created looks at the pods that are made.
type created struct {
	*fakeCluster
	look func(*corev1.Pod)
}

func (c created) CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	c.look(pod)
	return c.fakeCluster.CreatePod(ctx, pod)
}

func TestPod_Erase(t *testing.T) {
	f := &fakeCluster{becomes: terminated(corev1.PodSucceeded, 0, "erased: 5 bytes read as zeros")}
	if err := testFiller(f).Erase(t.Context()); err != nil || f.pod != nil {
		t.Errorf("%v, %v is left", err, f.pod)
	}
}

// What an interrupted apply left is removed before, and what others made under the name is left alone.
func TestPod_LeftOver(t *testing.T) {
	f := &fakeCluster{becomes: ready, state: "empty", put: func(string, io.Reader) (*http.Response, error) { return answer(http.StatusCreated, filled), nil }}
	meta := testFiller(nil).managed().Meta()
	f.pod, f.secret = &corev1.Pod{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta}
	if _, err := testFiller(f).Upload(t.Context(), open(nil), nil); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(append([]string{"delete pod", "delete Secret"}, uploaded...), f.did); diff != "" {
		t.Error(diff)
	}
	f.did, f.pod, f.secret = nil, &corev1.Pod{}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{Label: "other"}}}
	if err := testFiller(f).Remove(t.Context()); err != nil || len(f.did) > 0 {
		t.Errorf("%v %v", f.did, err)
	}
}

// What a newer provider has left stays, and the claim is not filled beside it.
func TestPod_OfNewerProvider(t *testing.T) {
	meta := testFiller(nil).managed().Meta()
	meta.Annotations = map[string]string{newer.Annotation: "2"}
	for _, f := range []*fakeCluster{{pod: &corev1.Pod{ObjectMeta: meta}}, {secret: &corev1.Secret{ObjectMeta: meta}}} {
		f.becomes, f.state = ready, "empty"
		_, upload := testFiller(f).Upload(t.Context(), open(nil), nil)
		for _, err := range []error{upload, testFiller(f).Remove(t.Context())} {
			if !errors.Is(err, newer.Err) || !strings.Contains(err.Error(), testFiller(nil).managed().String()) || len(f.did) > 0 {
				t.Errorf("%v, and it did %v", err, f.did)
			}
		}
	}
}

// The pods are those of the examples, but for their names, and what the examples have for people.
func TestPod_LikeExamples(t *testing.T) {
	for file, tt := range map[string]struct {
		block   bool
		command string
		args    []string
		change  func(example *corev1.PodSpec)
	}{
		"upload.yaml": {true, "upload", []string{"-token-file=/token/token"}, func(example *corev1.PodSpec) {
			example.Containers[0].Args = []string{"upload", "-scratch=/scratch", "-overwrite", "-token-file=/token/token"}
			example.Volumes[2].Secret.SecretName = "virtclaim-id"
		}},
		"copy.yaml": {false, "copy", []string{"--", "quay.io/containerdisks/debian:13"}, func(example *corev1.PodSpec) {
			c := &example.Containers[0]
			c.Args = []string{"copy", "-scratch=/scratch", "-overwrite", "--", "quay.io/containerdisks/debian:13"}
			c.Env, c.VolumeMounts, example.Volumes = nil, c.VolumeMounts[:2], example.Volumes[:2]
			example.Volumes[0].PersistentVolumeClaim.ClaimName = "data"
		}},
	} {
		text, err := os.ReadFile("../../examples/volume-pods/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var example corev1.Pod
		var job batchv1.Job
		first, _, _ := strings.Cut(string(text), "\n---\n")
		if err := yaml.Unmarshal([]byte(first), &example); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(first), &job); err != nil {
			t.Fatal(err)
		}
		if file == "copy.yaml" {
			example.Spec, example.Labels = job.Spec.Template.Spec, job.Spec.Template.Labels
		}
		tt.change(&example.Spec)
		example.Spec.Containers[0].Name = "volume"
		example.Spec.RestartPolicy = corev1.RestartPolicyNever
		example.Spec.TerminationGracePeriodSeconds = new(int64(endSeconds))
		example.Spec.NodeSelector = map[string]string{"a": "b"}
		p := testFiller(nil)
		p.Block, p.Overwrite, p.NodeSelector = tt.block, true, map[string]string{"a": "b"}
		pod := p.pod(tt.command, tt.args)
		if diff := cmp.Diff(example.Spec, pod.Spec); diff != "" {
			t.Errorf("%s: -example +pod: %s", file, diff)
		}
		if pod.Labels["virtclaim.io/volume-pod"] != example.Labels["virtclaim.io/volume-pod"] || pod.Labels[Label] != "id" {
			t.Errorf("%s: the labels are %v", file, pod.Labels)
		}
	}
}
