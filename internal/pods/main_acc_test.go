//go:build acc

package pods_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/pods"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/podimage"
)

func TestMain(m *testing.M) { acctest.Main(m) }

const (
	namespace = "populator"
	claimSize = 32 << 20
)

// kinds are those of claims, and whether they are block devices.
var kinds = map[string]bool{"filesystem": false, "block": true}

// claim is a claim of a folder or a device of this machine, and the pod that fills it.
type claim struct {
	pods.Filler
	l *lab.Lab
	// stored is where its content is: the device, or disk.img.
	stored string
}

var build = sync.OnceValues(func() (v1.ImageIndex, error) { return podimage.Build(context.Background(), "test", "amd64") })

func newClaim(t *testing.T, l *lab.Lab, name string, block bool) *claim {
	t.Helper()
	acctest.Schedule(t, l, namespace)
	registry := acctest.Must(l.Registry(t.Context()))(t)
	image := acctest.Must(registry.PushImage(t.Context(), "virtclaim-volume", "test", acctest.Must(build())(t)))(t).Reference
	c := &claim{l: l, Filler: pods.Filler{
		Cluster: client(t, l, nil), Namespace: namespace, Claim: name, Block: block, Image: image, ID: name,
	}}
	var path string
	if block {
		device := acctest.Must(l.AddBlockDevice(t.Context(), claimSize, nil))(t)
		acctest.Undo(t, func(ctx context.Context) error { return l.RemoveBlockDevice(ctx, device) })
		path, c.stored = device.Path, device.Path
	} else {
		path = t.TempDir()
		c.stored = filepath.Join(path, "disk.img")
	}
	acctest.AddClaim(t, l, lab.ClaimSpec{
		Namespace: namespace, Name: name, Filesystem: !block, Size: claimSize,
		Source: &corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"host-a"}}},
		}}}},
	})
	t.Cleanup(func() { c.leavesNothing(t) })
	return c
}

// client is a client of the lab's API server.
func client(t *testing.T, l *lab.Lab, change func(*rest.Config)) *cluster.Client {
	t.Helper()
	config := acctest.Must(clientcmd.BuildConfigFromFlags("", l.Cluster.Kubeconfig))(t)
	if change != nil {
		change(config)
	}
	config.QPS = -1
	objects := acctest.Must(kubernetes.NewForConfig(config))(t)
	return cluster.NewForClients(config.Host, objects, acctest.Must(metadata.NewForConfig(config))(t))
}

// leavesNothing fails the test if a pod or a Secret is left.
func (c *claim) leavesNothing(t *testing.T) {
	t.Helper()
	only := metav1.ListOptions{LabelSelector: pods.Label}
	ctx := context.WithoutCancel(t.Context())
	pods := acctest.Must(c.l.Cluster.Client.CoreV1().Pods(namespace).List(ctx, only))(t)
	secrets := acctest.Must(c.l.Cluster.Client.CoreV1().Secrets(namespace).List(ctx, only))(t)
	if len(pods.Items)+len(secrets.Items) > 0 {
		t.Errorf("left are %d pods and %d Secrets", len(pods.Items), len(secrets.Items))
	}
}

// upload fills the claim with a file.
func (c *claim) upload(t *testing.T, file string) (podwire.Filled, error) {
	t.Helper()
	return c.Upload(t.Context(), func(context.Context) (io.ReadCloser, error) { return os.Open(file) }, nil)
}

// holds fails the test unless the claim has this content.
func (c *claim) holds(t *testing.T, want []byte) {
	t.Helper()
	if got := acctest.StoredAt(t, c.stored, 0, len(want)); got != string(want) {
		t.Errorf("claim %s does not hold the image; it begins with %q", c.Claim, got[:40])
	}
}

func wrong(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
}

// disk is a raw image that begins with a text, has a partition table, and is blank in part.
func disk(t *testing.T, begin string, mib int) (path string, content []byte) {
	t.Helper()
	content = make([]byte, mib<<20)
	for at := 1 << 20; at < len(content); at += 2 << 20 {
		copy(content[at:], bytes.Repeat([]byte(begin), 1000))
	}
	copy(content, begin)
	copy(content[512:], "EFI PART")
	path = filepath.Join(t.TempDir(), "disk.raw")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, content
}

func qcow2(t *testing.T, raw string) string {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, raw+".qcow2").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return raw + ".qcow2"
}

// hosts has the pods find the lab's registry under a name below localhost: it has no TLS.
type hosts struct {
	*cluster.Client
	alias corev1.HostAlias
}

func (h hosts) CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	pod.Spec.HostAliases = []corev1.HostAlias{h.alias}
	return h.Client.CreatePod(ctx, pod)
}

// pushed is the reference of an image with a disk, for the claim's pods.
func (c *claim) pushed(t *testing.T, file string) (reference string) {
	t.Helper()
	registry := acctest.Must(c.l.Registry(t.Context()))(t)
	image := acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "disk", Tag: c.Claim, Compression: "none",
		Layers: []lab.ImageLayer{{Files: map[string][]byte{"disk/disk.img": acctest.Must(os.ReadFile(file))(t)}}},
	}))(t)
	_, port, _ := strings.Cut(registry.Address, ":")
	alias := corev1.HostAlias{IP: acctest.Must(c.l.Node(t.Context()))(t).Machine, Hostnames: []string{"registry.localhost"}}
	if client, ok := c.Cluster.(*cluster.Client); ok {
		c.Cluster = hosts{client, alias}
	}
	return "registry.localhost:" + port + "/disk@" + image.Digest
}

// killed is a provider that is killed before it removes what it made.
type killed struct {
	*cluster.Client
	made bool
}

var errKilled = errors.New("killed")

func (k *killed) CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	k.made = true
	return k.Client.CreatePod(ctx, pod)
}

func (k *killed) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if k.made {
		return nil, errKilled
	}
	return k.Client.Pod(ctx, namespace, name)
}

// rights notes which rights the requests to an API server need.
type rights struct {
	next http.RoundTripper
	mu   sync.Mutex
	used map[string]bool
}

func (r *rights) RoundTrip(request *http.Request) (*http.Response, error) {
	_, rest, _ := strings.Cut(request.URL.Path, "/namespaces/"+namespace+"/")
	parts := strings.Split(rest, "/")
	verb := map[string]string{"GET": "get", "POST": "create", "PUT": "update", "DELETE": "delete"}[request.Method]
	right := parts[0]
	switch {
	case len(parts) == 1 && request.URL.Query().Get("watch") != "":
		verb = "watch"
	case len(parts) == 1 && request.Method == http.MethodGet:
		verb = "list"
	case len(parts) > 2:
		right += "/" + parts[2]
	}
	r.mu.Lock()
	r.used[fmt.Sprint(verb, " ", right)] = true
	r.mu.Unlock()
	return r.next.RoundTrip(request)
}
