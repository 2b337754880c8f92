package pods

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
)

// Filler fills a claim by a pod of the volume image, which mounts it.
type Filler struct {
	Cluster          Cluster
	Namespace, Claim string
	// Block is whether the claim is a device, and has no filesystem.
	Block bool
	// Image is the reference of the volume image.
	Image string
	// ID names the pod and its Secret: those that an interrupted apply left are removed by it.
	ID           string
	NodeSelector map[string]string
	// Overwrite is whether what is in the claim may be overwritten.
	Overwrite bool
}

// ErrHasContent is the error of a claim that is not blank and was not written to.
var ErrHasContent = errors.New("the claim has content")

// Label is the label of the pod and its Secret with the ID.
const Label = "virtclaim.io/content"

const (
	container = "volume"
	tokenKey  = "token"
)

func (p Filler) managed() Pod {
	return Pod{
		Cluster: p.Cluster, Namespace: p.Namespace, Name: "virtclaim-" + p.ID, Label: Label, Owner: p.ID, Container: container,
		Confidential: []string{tokenKey},
	}
}

// Upload fills the claim with an image, which open opens once the pod waits for it and has found the claim unused. report is called from
// another goroutine, with how many bytes are sent. The result has a digest if the claim is filled, also when the pod could not be removed
// then.
func (p Filler) Upload(ctx context.Context, open func(context.Context) (io.ReadCloser, error),
	report func(done int64),
) (f podwire.Filled, err error) {
	token := rand.Text()
	err = p.run(ctx, "upload", []string{"-token-file=/token/token"}, token, func(m Pod, pod *corev1.Pod) error {
		if err := p.awaitUnused(ctx, m, pod, token); err != nil {
			return err
		}
		image, err := open(ctx)
		if err != nil {
			return err
		}
		if f, err = p.put(ctx, m, token, &sent{ReadCloser: image, report: report}); err != nil {
			err = m.Explain(ctx, pod, fmt.Errorf("the %s has not filled the claim: %w", m, err))
		}
		return err
	})
	return f, err
}

// CheckUnused is ErrHasContent for a claim with content.
func (p Filler) CheckUnused(ctx context.Context) error {
	token := rand.Text()
	return p.run(ctx, "upload", []string{"-token-file=/token/token"}, token, func(m Pod, pod *corev1.Pod) error {
		return p.awaitUnused(ctx, m, pod, token)
	})
}

// awaitUnused waits until the pod has looked at the claim. Whatever is there afterwards is what the pod has written.
func (p Filler) awaitUnused(ctx context.Context, m Pod, pod *corev1.Pod, token string) error {
	if err := m.AwaitReady(ctx, pod); err != nil || p.Overwrite {
		return err
	}
	_, text, err := p.request(ctx, m, token, http.MethodGet, http.NoBody)
	var is podwire.Volume
	switch {
	case err != nil:
	case json.Unmarshal(text, &is) != nil || is.State == "":
		err = fmt.Errorf("it does not say what the claim has: %.1024q. Use an image of this version of the provider", text)
	case is.State == podwire.IsFilled:
		err = fmt.Errorf("%w: %.1024q", ErrHasContent, is.Error)
	}
	if err != nil {
		err = m.Explain(ctx, pod, fmt.Errorf("the %s has not filled the claim: %w", m, err))
	}
	return err
}

// Copy fills the claim with the disk at a path in a container image; with an empty path, the only file below /disk. A claim with a
// filesystem that was filled with this image counts as filled, whatever a guest has written to it since. The result is like that of Upload.
func (p Filler) Copy(ctx context.Context, reference, path string) (f podwire.Filled, err error) {
	err = p.run(ctx, "copy", []string{"-path=" + path, "--", reference}, "", func(m Pod, pod *corev1.Pod) error {
		said, err := m.AwaitSuccess(ctx, pod)
		if err == nil {
			f, err = parse([]byte(said))
		}
		return err
	})
	return f, err
}

// Erase has all of the claim read as zeros.
func (p Filler) Erase(ctx context.Context) error {
	return p.run(ctx, "erase", nil, "", func(m Pod, pod *corev1.Pod) error {
		_, err := m.AwaitSuccess(ctx, pod)
		return err
	})
}

// Remove removes the pod and its Secret, also those that an interrupted apply left, and waits until the container has ended.
func (p Filler) Remove(ctx context.Context) error { return p.managed().Remove(ctx) }

// run makes the pod, with a Secret if there is a token, has it used, and removes both.
func (p Filler) run(ctx context.Context, command string, args []string, token string, use func(Pod, *corev1.Pod) error) (err error) {
	m := p.managed()
	if err := m.Remove(ctx); err != nil {
		return fmt.Errorf("removing the %s that an earlier apply left: %w", m, err)
	}
	defer func() {
		ctx, cancel := revert.Context(ctx)
		defer cancel()
		if exit := (*ExitError)(nil); errors.As(err, &exit) && exit.ExitCode == podwire.ExitFilled {
			err = fmt.Errorf("%w: %w", ErrHasContent, err)
		}
		err = errors.Join(err, m.Remove(ctx))
	}()
	if token != "" {
		secret := &corev1.Secret{ObjectMeta: m.Meta(), Type: corev1.SecretTypeOpaque, StringData: map[string]string{tokenKey: token}}
		if err := p.Cluster.CreateSecret(ctx, secret); err != nil {
			return err
		}
	}
	pod, err := p.Cluster.CreatePod(ctx, p.pod(command, args))
	if err != nil {
		return err
	}
	return use(m, pod)
}

// put sends the image.
func (p Filler) put(ctx context.Context, m Pod, token string, image *sent) (f podwire.Filled, err error) {
	status, text, err := p.request(ctx, m, token, http.MethodPut, image)
	if failed := image.failed.Load(); failed != nil {
		err = *failed // the others follow from it
	}
	if err == nil {
		return parse(text)
	}
	if status == http.StatusConflict {
		err = fmt.Errorf("%w: %w", ErrHasContent, err)
	}
	return f, err
}

// request sends a request to the pod. An answer that is no success is an error.
func (p Filler) request(ctx context.Context, m Pod, token, method string, body io.Reader) (status int, text []byte, err error) {
	header := http.Header{podwire.TokenHeader: {token}}
	resp, err := p.Cluster.PodRequest(ctx, m.Namespace, m.Name, "https", podwire.Port, method, podwire.Path, nil, header, body)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil || resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusCreated {
		return resp.StatusCode, text, err
	}
	var said struct{ Error, Message string } // of the pod, and of the API server
	if json.Unmarshal(text, &said) != nil || said.Error+said.Message == "" {
		said.Error = string(text)
	}
	said.Error = strings.ReplaceAll(said.Error+said.Message, token, "***")
	return resp.StatusCode, nil, fmt.Errorf("the answer is %d %s: %.1024q", resp.StatusCode, http.StatusText(resp.StatusCode), said.Error)
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

// parse reads what a pod says that it has filled the claim with.
func parse(text []byte) (f podwire.Filled, err error) {
	if err := json.Unmarshal(text, &f); err != nil || f.Digest == "" {
		return podwire.Filled{}, fmt.Errorf("the pod has ended well, but does not say what it has filled the claim with: %.1024q. "+
			"Use an image of this version of the provider", text)
	}
	return f, nil
}

// sent is an image that is being sent.
type sent struct {
	io.ReadCloser
	report func(int64)
	done   int64
	failed atomic.Pointer[error]
}

func (s *sent) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	if s.done += int64(n); s.report != nil && n > 0 {
		s.report(s.done)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed.Store(&err)
	}
	return n, err
}
