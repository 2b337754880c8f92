//go:build acc

package cluster_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// requests counts requests to the API server, by the last element of the path for lists and the one before it for objects.
type requests struct {
	next http.RoundTripper

	mu    sync.Mutex
	lists map[string]int
	gets  map[string]int
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	words := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	last := words[len(words)-1]
	r.mu.Lock()
	if request.URL.Query().Has("limit") {
		r.lists[last]++
	} else {
		r.gets[words[len(words)-2]]++
	}
	r.mu.Unlock()
	return r.next.RoundTrip(request)
}

// counting returns a client of the lab's API server, and its requests.
func counting(t *testing.T, l *lab.Lab) (*cluster.Client, *requests) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.Cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	r := &requests{lists: map[string]int{}, gets: map[string]int{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		r.next = next
		return r
	})
	objects, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return cluster.NewForClients(config.Host, objects, meta), r
}

// namespace creates a namespace for the test.
func namespace(t *testing.T, l *lab.Lab, name string) {
	t.Helper()
	if err := l.AddNamespace(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// cleanUp deletes an object at the end of the test.
func cleanUp(t *testing.T, what string, remove func(context.Context, string, metav1.DeleteOptions) error, name string) {
	t.Helper()
	t.Cleanup(func() {
		if err := remove(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Errorf("remove %s %s: %v", what, name, err)
		}
	})
}
