package cluster

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cached reads objects for a refresh. It caches answers for half a minute, and reads many objects in a few lists, so that the refresh of a
// thousand bindings does not take thousands of requests. An apply must read from the Client itself. Returned objects are shared: they must
// not be changed.
type Cached struct {
	claims     *listCaches[*corev1.PersistentVolumeClaim]
	volumes    *listCaches[*corev1.PersistentVolume]
	secrets    *listCaches[string]
	configMaps *listCaches[*corev1.ConfigMap]
	endpoints  *listCaches[*corev1.Endpoints] //nolint:staticcheck // see Client.Endpoints
	pods       *listCaches[[]PodUse]
}

// Cached returns a reader with an empty cache. All resources of a refresh share one.
func (c *Client) Cached() *Cached {
	return &Cached{
		claims: listCachesOf(c, kind[*corev1.PersistentVolumeClaim]{
			name: "PersistentVolumeClaim", resource: "persistentvolumeclaims", get: c.Claim, list: c.Claims,
		}),
		volumes: listCachesOf(c, kind[*corev1.PersistentVolume]{
			name: "PersistentVolume", resource: "persistentvolumes", list: c.allVolumes,
			get: func(ctx context.Context, _, name string) (*corev1.PersistentVolume, error) {
				return c.Volume(ctx, name)
			},
		}),
		secrets: listCachesOf(c, kind[string]{name: "Secret", resource: "secrets", get: c.SecretVersion, list: c.allSecretVersions}),
		// These objects are few, and many volumes reference the same one.
		configMaps: listCachesOf(c, kind[*corev1.ConfigMap]{name: "ConfigMap", get: c.ConfigMap}),
		//nolint:staticcheck // see Client.Endpoints
		endpoints: listCachesOf(c, kind[*corev1.Endpoints]{name: "Endpoints", get: c.Endpoints}),
		pods:      listCachesOf(c, kind[[]PodUse]{name: "the pods that use PersistentVolumeClaim", list: c.podUses}),
	}
}

// Claim is Client.Claim.
func (r *Cached) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return r.claims.read(ctx, namespace, name)
}

// Volume is Client.Volume.
func (r *Cached) Volume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return r.volumes.read(ctx, metav1.NamespaceNone, name)
}

// SecretVersion is Client.SecretVersion.
func (r *Cached) SecretVersion(ctx context.Context, namespace, name string) (string, error) {
	return r.secrets.read(ctx, namespace, name)
}

// ConfigMap is Client.ConfigMap.
func (r *Cached) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return r.configMaps.read(ctx, namespace, name)
}

// Endpoints is Client.Endpoints.
//
//nolint:staticcheck // see Client.Endpoints
func (r *Cached) Endpoints(ctx context.Context, namespace, name string) (*corev1.Endpoints, error) {
	return r.endpoints.read(ctx, namespace, name)
}

// PodsUsing is Client.PodsUsing.
func (r *Cached) PodsUsing(ctx context.Context, namespace, claim string) ([]PodUse, error) {
	return r.pods.read(ctx, namespace, claim)
}

// listCaches are the caches of one kind, by namespace.
type listCaches[T any] struct {
	client *Client
	kind   kind[T]

	mu  sync.Mutex
	all map[string]*listCache[T]
}

func listCachesOf[T any](c *Client, k kind[T]) *listCaches[T] {
	return &listCaches[T]{client: c, kind: k, all: map[string]*listCache[T]{}}
}

func (s *listCaches[T]) read(ctx context.Context, namespace, name string) (T, error) {
	s.mu.Lock()
	cache, ok := s.all[namespace]
	if !ok {
		cache = newListCache(s.client, s.kind, namespace)
		s.all[namespace] = cache
	}
	s.mu.Unlock()
	return cache.read(ctx, name)
}
