package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

// serve returns a client of an API server with that handler.
func serve(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	client, err := New(Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	answer(w, int(status.Code), &status)
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func TestClient_ErrorsNameObjectAndWrapStatus(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, apierrors.NewNotFound(corev1.Resource("things"), "x"))
	})
	reads := map[string]func(context.Context) error{
		"PersistentVolumeClaim vms/x": func(ctx context.Context) error { _, err := client.Claim(ctx, "vms", "x"); return err },
		"PersistentVolume x":          func(ctx context.Context) error { _, err := client.Volume(ctx, "x"); return err },
		"StorageClass x":              func(ctx context.Context) error { _, err := client.StorageClass(ctx, "x"); return err },
		"Node x":                      func(ctx context.Context) error { _, err := client.Node(ctx, "x"); return err },
		"Secret vms/x":                func(ctx context.Context) error { _, err := client.Secret(ctx, "vms", "x"); return err },
	}
	for what, read := range reads {
		t.Run(what, func(t *testing.T) {
			err := read(t.Context())
			if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "reading "+what+" from the API server "+client.server) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("version of a secret", func(t *testing.T) {
		if _, err := client.SecretVersion(t.Context(), "vms", "x"); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "Secret vms/x") {
			t.Errorf("got %v", err)
		}
	})
}

func TestPatchClaim_MergePatchWithFieldManager(t *testing.T) {
	const patch = `{"metadata":{"resourceVersion":"7","annotations":{"a":null}}}`
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPatch || r.URL.Path != "/api/v1/namespaces/vms/persistentvolumeclaims/golden" || string(body) != patch {
			t.Errorf("it asks %s %s with %s", r.Method, r.URL, body)
		}
		if manager := r.URL.Query().Get("fieldManager"); manager != "terraform-provider-virtclaim" {
			t.Errorf("the field manager is %q", manager)
		}
		if content := r.Header.Get("Content-Type"); content != "application/merge-patch+json" {
			t.Errorf("the patch is %s", content)
		}
		refuse(w, apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), "golden", errors.New("not that version")))
	})
	err := client.PatchClaim(t.Context(), "vms", "golden", []byte(patch))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "writing PersistentVolumeClaim vms/golden at the API server "+client.server) {
		t.Errorf("got %v", err)
	}
}

func TestSecretVersion_RequestsMetadataOnly(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if accept := r.Header.Get("Accept"); !strings.Contains(accept, "as=PartialObjectMetadata") {
			t.Errorf("it accepts %s", accept)
		}
		answer(w, http.StatusOK, &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "chap", ResourceVersion: "42"},
		})
	})
	if version, err := client.SecretVersion(t.Context(), "vms", "chap"); err != nil || version != "42" {
		t.Errorf("got %q, %v", version, err)
	}
}

func TestClient_UnreachableServerIsNamed(t *testing.T) {
	silent := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	t.Run("when it takes too long", func(t *testing.T) {
		client := serve(t, silent)
		client.answerTime = 50 * time.Millisecond
		_, err := client.Volume(t.Context(), "x")
		if err == nil || !strings.Contains(err.Error(), "API server "+client.server) || !strings.Contains(err.Error(), "no answer within 50ms") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("when the caller's time is over", func(t *testing.T) {
		client := serve(t, silent)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := client.Volume(ctx, "x")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), client.server) || strings.Contains(err.Error(), "no answer") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("when nobody listens", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		server.Close()
		client, err := New(Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Volume(t.Context(), "x")
		if err == nil || apierrors.IsNotFound(err) || !strings.Contains(err.Error(), server.URL) {
			t.Errorf("got %v", err)
		}
	})
}

// A pod's redirect would be followed with the credentials of the API server.
func TestPodRequest_FollowsNoRedirect(t *testing.T) {
	var seen []string
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.URL.String()+" "+r.Header.Get("Virtclaim-Token"))
		http.Redirect(w, r, "/api/v1/namespaces/kube-system/secrets", http.StatusTemporaryRedirect)
	})
	resp, err := client.PodRequest(t.Context(), "vms", "pod", "https", 8443, http.MethodPut, "/volume", url.Values{"size": {"1 Gi"}},
		http.Header{"Virtclaim-Token": {"secret"}}, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	want := "PUT /api/v1/namespaces/vms/pods/https:pod:8443/proxy/volume?size=1+Gi secret"
	if resp.StatusCode != http.StatusTemporaryRedirect || len(seen) != 1 || seen[0] != want {
		t.Errorf("%d: %q", resp.StatusCode, seen)
	}
}

// An image is sent while it is read, however long that takes, and its length is not known before.
func TestPodRequest_StreamsBody(t *testing.T) {
	got := make(chan string)
	client := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		for part := make([]byte, 5); ; {
			n, err := io.ReadFull(r.Body, part)
			if err != nil {
				got <- fmt.Sprint(r.ContentLength, err)
				return
			}
			got <- string(part[:n])
		}
	})
	client.answerTime = time.Nanosecond
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		resp, err := client.PodRequest(t.Context(), "vms", "pod", "https", 8443, http.MethodPut, "/volume", nil, http.Header{}, r)
		if err == nil {
			err = resp.Body.Close()
		}
		ended <- err
	}()
	for _, part := range []string{"first", "again"} {
		if _, err := io.WriteString(w, part); err != nil {
			t.Fatal(err)
		}
		if is := <-got; is != part {
			t.Errorf("got %q", is)
		}
	}
	_ = w.Close()
	if is := <-got; is != "-1 EOF" {
		t.Errorf("the end is %q", is)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The API server calls a client without credentials system:anonymous, and does not say what is missing.
func TestClient_AnonymousIsToldOfCredentials(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/none"):
			refuse(w, apierrors.NewNotFound(corev1.Resource("things"), "none"))
		case strings.HasSuffix(r.URL.Path, "/bad"):
			refuse(w, apierrors.NewUnauthorized("no"))
		default:
			refuse(w, apierrors.NewForbidden(corev1.Resource("things"), "x", errors.New("no")))
		}
	}))
	defer server.Close()
	const said = "No credentials were sent: set token"
	for name, c := range map[string]struct {
		config    Config
		anonymous bool
	}{
		"nothing":                    {Config{Host: server.URL}, true},
		"a token":                    {Config{Host: server.URL, Token: "top-secret-token"}, false},
		"a password":                 {Config{Host: server.URL, Username: "u", Password: "top-secret-token"}, false},
		"a user":                     {Config{Host: server.URL, ConfigPath: write(t, t.TempDir(), kubeconfig)}, false},
		"a user without credentials": {Config{Host: server.URL, ConfigPath: write(t, t.TempDir(), strings.ReplaceAll(kubeconfig, "token: top-secret-token", ""))}, true},
	} {
		c.config.Insecure = true
		client, err := New(c.config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, read := client.Volume(t.Context(), "x")
		_, unknown := client.Volume(t.Context(), "bad")
		_, listed := client.PodsUsing(t.Context(), "vms", "x")
		for what, err := range map[string]error{
			"read": read, "unknown": unknown, "written": client.PatchClaim(t.Context(), "vms", "x", []byte("{}")), "listed": listed,
			"watched": client.WatchClaim(t.Context(), "vms", "x", func(*corev1.PersistentVolumeClaim) bool { return true }),
		} {
			if err == nil || strings.Contains(err.Error(), said) != c.anonymous || !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if _, err := client.Volume(t.Context(), "none"); !apierrors.IsNotFound(err) || strings.Contains(err.Error(), said) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if isAnonymous(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}}) || isAnonymous(&rest.Config{ExecProvider: &api.ExecConfig{}}) {
		t.Error("a certificate or a program is no credential")
	}
}
