package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Pod reads a Pod.
func (c *Client) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return get(ctx, c, "Pod "+namespace+"/"+name, name, c.objects.CoreV1().Pods(namespace))
}

// CreatePod creates a Pod.
func (c *Client) CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	ctx, cancel := c.withAnswerTime(ctx)
	defer cancel()
	made, err := c.objects.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: userAgent})
	return made, c.writing("creating Pod", pod, err)
}

// DeletePod deletes a Pod, and waits until its containers have ended. One that is gone is no error.
func (c *Client) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	only := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}
	limited, cancel := c.withAnswerTime(ctx)
	defer cancel()
	err := c.objects.CoreV1().Pods(pod.Namespace).Delete(limited, pod.Name, only)
	if err == nil {
		err = c.WatchPod(ctx, pod.Namespace, pod.Name, func(now *corev1.Pod) (bool, error) { return now.UID != pod.UID, nil })
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // a conflict is a pod of another UID
		return nil
	}
	return c.writing("deleting Pod", pod, err)
}

// CreateSecret creates a Secret.
func (c *Client) CreateSecret(ctx context.Context, s *corev1.Secret) error {
	ctx, cancel := c.withAnswerTime(ctx)
	defer cancel()
	_, err := c.objects.CoreV1().Secrets(s.Namespace).Create(ctx, s, metav1.CreateOptions{FieldManager: userAgent})
	return c.writing("creating Secret", s, err)
}

// DeleteSecret deletes a Secret. One that is gone is no error.
func (c *Client) DeleteSecret(ctx context.Context, s *corev1.Secret) error {
	ctx, cancel := c.withAnswerTime(ctx)
	defer cancel()
	err := c.objects.CoreV1().Secrets(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return c.writing("deleting Secret", s, err)
}

func (c *Client) writing(what string, of metav1.Object, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s/%s at the API server %s: %w", what, of.GetNamespace(), of.GetName(), c.server, c.explain(err))
}

// logBytes bounds what is read of a container's log.
const logBytes = 16 << 10

// LastLines are the last lines of the log of a container, or of the one before it if it has just been started. They are empty if they can't
// be read, because they only detail another error.
func (c *Client) LastLines(ctx context.Context, namespace, pod, container string, lines int64) string {
	for _, previous := range []bool{false, true} {
		limited, cancel := c.withAnswerTime(ctx)
		limit := int64(logBytes)
		text, err := c.objects.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{
			Container: container, Previous: previous, TailLines: &lines, LimitBytes: &limit,
		}).DoRaw(limited)
		cancel()
		if said := strings.TrimSpace(string(text)); err == nil && said != "" {
			return said
		}
	}
	return ""
}

// PodRequest sends a request to a port of a pod through the API server, and returns the pod's answer, or that of the API server if it does
// not reach the pod. The body and the answer may be of any size, and take as long as the context lets them. Redirects are not followed:
// they would be with the credentials of the API server.
func (c *Client) PodRequest(ctx context.Context, namespace, pod, scheme string, port int32, method, path string, query url.Values,
	header http.Header, body io.Reader,
) (*http.Response, error) {
	api, ok := c.objects.CoreV1().RESTClient().(*rest.RESTClient)
	if !ok {
		return nil, errors.New("this client has no connection")
	}
	to := api.Verb(method).Namespace(namespace).Resource("pods").Name(fmt.Sprintf("%s:%s:%d", scheme, pod, port)).SubResource("proxy").
		Suffix(path).URL()
	to.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, to.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header = header
	client := *api.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client.Do(req)
}
