package content

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// usagePrefix is the prefix of the annotations of a Kubernetes node with its usage types: the rest of the key is the usage type, the value
// a folder. The name is that of KubeVirt's design of storage pools.
const usagePrefix = "kubevirt.io/storage.usage-type."

// UsageTypes map the usage types of a host to the storage pools of their volumes.
type UsageTypes struct {
	// Host is the host's key.
	Host string
	// Pools are the configured ones; if there are none, the annotations of the host's node are used.
	Pools map[string]string
	// Annotations reads those of the host's node; nil if no cluster is configured.
	Annotations func(ctx context.Context) (map[string]string, error)
}

// pools are the calls of a host for storage pools.
type pools interface {
	PoolOfTarget(ctx context.Context, path string) (string, error)
	MakeDirPool(ctx context.Context, name, path string) error
	StartPool(ctx context.Context, name string) error
}

// Check is nil if the host has a usage type. The error lists the existing ones.
func (u UsageTypes) Check(ctx context.Context, usageType string) error {
	_, err := u.find(ctx, usageType)
	return err
}

// Pool is the pool of a usage type. For a folder it is the pool with that target, or else a new one, which is never deleted.
func (u UsageTypes) Pool(ctx context.Context, h pools, usageType string) (string, error) {
	place, err := u.find(ctx, usageType)
	if err != nil || place.Pool != "" {
		return place.Pool, err
	}
	own := "virtclaim-" + usageType
	pool, err := h.PoolOfTarget(ctx, place.Folder)
	if errors.Is(err, host.ErrNotFound) {
		made := h.MakeDirPool(ctx, own, place.Folder)
		if made == nil {
			return own, nil
		}
		// Another process may have created it meanwhile.
		if pool, err = h.PoolOfTarget(ctx, place.Folder); err != nil {
			return "", made
		}
	}
	if err == nil && pool == own {
		err = h.StartPool(ctx, own) // it may be defined, but not active yet
	}
	return pool, err
}

// Existing is Pool, but makes and starts none.
func (u UsageTypes) Existing(ctx context.Context, h pools, usageType string) (string, error) {
	place, err := u.find(ctx, usageType)
	if err != nil || place.Pool != "" {
		return place.Pool, err
	}
	return h.PoolOfTarget(ctx, place.Folder)
}

// Place is the location of a usage type.
type Place struct {
	// Pool is a storage pool. If it is empty, Folder is the target path of the pool, which may not exist yet.
	Pool, Folder string
}

// Places are the locations of the host's usage types. They are not checked.
func (u UsageTypes) Places(ctx context.Context) (map[string]Place, error) {
	places := map[string]Place{}
	for t, pool := range u.Pools {
		places[t] = Place{Pool: pool}
	}
	if len(places) > 0 || u.Annotations == nil {
		return places, nil
	}
	annotations, err := u.Annotations(ctx)
	for name, value := range annotations {
		if t, ok := strings.CutPrefix(name, usagePrefix); ok {
			places[t] = Place{Folder: value}
		}
	}
	return places, err
}

// First is the first usage type of the host by name.
func (u UsageTypes) First(ctx context.Context) (string, error) {
	places, err := u.Places(ctx)
	if err == nil && len(places) == 0 {
		err = fmt.Errorf("host %s has no usage types: add storage = { <usage type> = \"<libvirt storage pool>\" } to it", u.Host)
	}
	if err != nil {
		return "", err
	}
	return slices.Min(slices.Collect(maps.Keys(places))), nil
}

// Only is the host's only usage type. The error lists them if there are several.
func (u UsageTypes) Only(ctx context.Context) (string, error) {
	places, err := u.Places(ctx)
	if err == nil && len(places) > 1 {
		names := slices.Sorted(maps.Keys(places))
		return "", fmt.Errorf("host %s has the usage types %s: set usage_type to one of them", u.Host, strings.Join(names, ", "))
	}
	return u.First(ctx)
}

// find is the location of a usage type. The error lists the existing ones.
func (u UsageTypes) find(ctx context.Context, usageType string) (Place, error) {
	places, err := u.Places(ctx)
	if err != nil {
		return Place{}, err
	}
	if len(places) == 0 && u.Annotations == nil {
		return Place{}, fmt.Errorf("host %s has no usage types: add storage = { %s = \"<libvirt storage pool>\" } to it", u.Host, usageType)
	}
	place, ok := places[usageType]
	if !ok {
		where := "in the storage of its configuration"
		if len(u.Pools) == 0 {
			where = "in the annotations " + usagePrefix + "* of its Kubernetes node"
		}
		names := cmp.Or(strings.Join(slices.Sorted(maps.Keys(places)), ", "), "none")
		return Place{}, fmt.Errorf("host %s has no usage type %q; it has %s, %s", u.Host, usageType, names, where)
	}
	if place.Pool == "" && (!path.IsAbs(place.Folder) || slices.Contains(strings.Split(place.Folder, "/"), "..")) {
		return Place{},
			fmt.Errorf("the annotation %s of the Kubernetes node of host %s is %q, which must be an absolute path, and have no .. in it",
				usagePrefix+usageType, u.Host, place.Folder)
	}
	return place, nil
}
