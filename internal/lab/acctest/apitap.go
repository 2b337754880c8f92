package acctest

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

// APITap is between the provider and the API server. After the nth step of what changes something it calls fault.
type APITap struct {
	// URL and CA are for the provider.
	URL, CA string

	path string
	// change changes requests before the API server has them; nil changes none.
	change func(*http.Request) error

	mu   sync.Mutex
	all  []*http.Request
	seen []string
	nth  int
	// fault returns whether the provider must not get the answer.
	fault func() (isLost bool)
}

// TapAPI is a tap with the credentials of an administrator, or only those that requests have.
func TapAPI(t *testing.T, l *lab.Lab, asAdmin bool) *APITap {
	t.Helper()
	config := Must(clientcmd.BuildConfigFromFlags("", l.Cluster.Kubeconfig))(t)
	if !asAdmin {
		config = rest.AnonymousClientConfig(config)
	}
	to := Must(url.Parse(config.Host))(t)
	tap := &APITap{path: l.Cluster.Kubeconfig}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = Must(rest.TransportFor(config))(t)
	proxy.FlushInterval = -1
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tap.note(r)
		if r.Method == http.MethodGet {
			proxy.ServeHTTP(w, r)
			return
		}
		if tap.change != nil {
			if err := tap.change(r); err != nil {
				t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
			}
		}
		step := r.Method + " " + r.URL.Path
		r.Body = &tappedBody{ReadCloser: r.Body, tap: tap, step: "the first MiB of " + step}
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		if tap.loses(step) {
			panic(http.ErrAbortHandler)
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = answer.Body.WriteTo(w)
	}))
	t.Cleanup(web.CloseClientConnections)
	t.Cleanup(web.Close)
	tap.URL, tap.CA = web.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))
	return tap
}

// Provider is the configuration of a provider of the lab, through the tap.
func (a *APITap) Provider(config string) string {
	return strings.Replace(config, fmt.Sprintf("config_path = %q", a.path),
		fmt.Sprintf("host = %q, cluster_ca_certificate = %q", a.URL, a.CA), 1)
}

// NameRegistry has pods that are created through the tap find the lab's registry, which has no TLS, under a name below localhost. reference
// is that of an image there.
func (a *APITap) NameRegistry(node *lab.Node) (reference func(lab.RegistryImage) string) {
	const name = "registry.localhost"
	a.change = func(r *http.Request) error {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/pods") {
			return nil
		}
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		var pod corev1.Pod
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(sent, nil, &pod); err != nil {
			return err
		}
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		pod.Spec.HostAliases = []corev1.HostAlias{{IP: node.Machine, Hostnames: []string{name}}}
		changed, err := json.Marshal(pod)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(changed)), int64(len(changed))
		r.Header.Set("Content-Type", "application/json")
		return err
	}
	return func(image lab.RegistryImage) string {
		_, rest, _ := strings.Cut(image.ByDigest, ":")
		return name + ":" + rest
	}
}

func (a *APITap) note(r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, r.Clone(context.Background()))
}

// loses calls fault if its step is done, and returns whether the provider must not get the answer.
func (a *APITap) loses(step string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = append(a.seen, step)
	return len(a.seen) == a.nth && a.fault()
}

// Arm forgets which steps were done.
func (a *APITap) Arm(nth int, fault func() (isLost bool)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen, a.nth, a.fault = nil, nth, fault
}

// Fired is whether the fault has happened, and after which step.
func (a *APITap) Fired() (step string, yes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.nth == 0 || len(a.seen) < a.nth {
		return strings.Join(a.seen, ", "), false
	}
	return a.seen[a.nth-1], true
}

// Requests are all so far.
func (a *APITap) Requests() []*http.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

// tappedBody has a step in the middle of what is uploaded to a pod.
type tappedBody struct {
	io.ReadCloser
	tap  *APITap
	step string
	read int
}

func (b *tappedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	before := b.read
	if b.read += n; before < 1<<20 && b.read >= 1<<20 && b.tap.loses(b.step) {
		return n, http.ErrAbortHandler
	}
	return n, err
}

// KillProvider kills the providers of a running Terraform.
func KillProvider(terraform *exec.Cmd) error {
	return exec.CommandContext(context.Background(), "pkill", "-KILL", "-P", strconv.Itoa(terraform.Process.Pid)).Run()
}
