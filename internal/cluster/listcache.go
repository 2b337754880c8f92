package cluster

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// keepTime is how long an answer is cached: less than a user needs to change something and plan again.
	keepTime = 30 * time.Second
	// firstGets is how many objects are read individually before all are listed: most configurations have a few, and a cluster may have
	// very many.
	firstGets = 5
)

// kind describes how objects of one kind are read.
type kind[T any] struct {
	// name and resource are for errors. Without a resource, an object that is not in the list is no error.
	name, resource string
	// get reads one object; nil if only the list has it.
	get func(ctx context.Context, namespace, name string) (T, error)
	// list reads all objects of a namespace, by name; nil if objects are only read individually.
	list func(ctx context.Context, namespace string) (map[string]T, error)
}

// listCache caches the recent answers for one kind and namespace. Concurrent reads of the same object share one request. Errors are not
// cached, except that of a forbidden list, which is assumed to be permanent.
type listCache[T any] struct {
	client    *Client
	kind      kind[T]
	namespace string

	flights singleflight.Group

	mu        sync.Mutex
	ones      map[string]entry[T]
	all       entry[map[string]T]
	gets      int
	forbidden error
}

func newListCache[T any](c *Client, k kind[T], namespace string) *listCache[T] {
	return &listCache[T]{client: c, kind: k, namespace: namespace, ones: map[string]entry[T]{}}
}

// entry is an answer, and how long it is valid.
type entry[T any] struct {
	value T
	until time.Time
}

func keep[T any](value T) entry[T] { return entry[T]{value, time.Now().Add(keepTime)} }

func (k entry[T]) isFresh() bool { return time.Now().Before(k.until) }

// read returns a cached object; otherwise it gets the object, or lists all.
func (s *listCache[T]) read(ctx context.Context, name string) (T, error) {
	object, err := s.ask(ctx, name)
	if err != nil && ctx.Err() != nil {
		err = s.failed(name, context.Cause(ctx))
	}
	return object, err
}

func (s *listCache[T]) ask(ctx context.Context, name string) (T, error) {
	one, lists := s.cached(name)
	if one.isFresh() {
		return one.value, nil
	}
	if lists {
		all, err := fetchOnce(ctx, &s.flights, "list", s.fetchAll)
		if err == nil {
			return s.pick(all, name)
		}
		if s.kind.get == nil || !apierrors.IsForbidden(err) {
			var none T
			return none, err
		}
	}
	return fetchOnce(ctx, &s.flights, "get "+name, func(ctx context.Context) (T, error) { return s.fetchOne(ctx, name) })
}

// cached returns the individually read object, and whether the list is to be used instead; if not, it counts one more individual read.
func (s *listCache[T]) cached(name string) (one entry[T], lists bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one = s.ones[name]
	lists = s.kind.get == nil || s.kind.list != nil && s.forbidden == nil && (s.gets >= firstGets || s.all.isFresh())
	if !lists && !one.isFresh() {
		s.gets++
	}
	return one, lists
}

func (s *listCache[T]) fetchOne(ctx context.Context, name string) (T, error) {
	object, err := s.kind.get(ctx, s.namespace, name)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ones[name] = keep(object)
	}
	return object, err
}

// fetchAll returns the cached list, or lists again.
func (s *listCache[T]) fetchAll(ctx context.Context) (map[string]T, error) {
	s.mu.Lock()
	all, forbidden := s.all, s.forbidden
	s.mu.Unlock()
	if forbidden != nil || all.isFresh() {
		return all.value, forbidden
	}
	objects, err := s.kind.list(ctx, s.namespace)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.all = keep(objects)
	}
	if apierrors.IsForbidden(err) {
		s.forbidden = err
	}
	return objects, err
}

func (s *listCache[T]) failed(name string, err error) error {
	what := s.kind.name + " " + name
	if s.namespace != "" {
		what = s.kind.name + " " + s.namespace + "/" + name
	}
	return s.client.reading(what, err)
}

func (s *listCache[T]) pick(all map[string]T, name string) (T, error) {
	object, ok := all[name]
	if !ok && s.kind.resource != "" {
		return object, s.failed(name, apierrors.NewNotFound(corev1.Resource(s.kind.resource), name))
	}
	return object, nil
}

// fetchOnce fetches once for all concurrent readers of a key. A reader whose ctx ends returns without ending the request for the other
// readers.
func fetchOnce[T any](ctx context.Context, flights *singleflight.Group, key string, fetch func(context.Context) (T, error)) (T, error) {
	answer := flights.DoChan(key, func() (any, error) { return fetch(context.WithoutCancel(ctx)) })
	var none T
	select {
	case r := <-answer:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(T), nil
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}
