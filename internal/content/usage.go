package content

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// usagePrefix is the prefix of the annotations of a Kubernetes node with its usage types: the rest of the key is the usage type, the value a
// folder. The name is that of KubeVirt's design of storage pools.
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
	_, _, err := u.find(ctx, usageType)
	return err
}

// Pool is the pool of a usage type. For a folder it is the pool with that target, or else a new one, which is never deleted.
func (u UsageTypes) Pool(ctx context.Context, h pools, usageType string) (string, error) {
	pool, folder, err := u.find(ctx, usageType)
	if err != nil || pool != "" {
		return pool, err
	}
	own := "virtclaim-" + usageType
	pool, err = h.PoolOfTarget(ctx, folder)
	if errors.Is(err, host.ErrNotFound) {
		made := h.MakeDirPool(ctx, own, folder)
		if made == nil {
			return own, nil
		}
		// Another process may have created it meanwhile.
		if pool, err = h.PoolOfTarget(ctx, folder); err != nil {
			return "", made
		}
	}
	if err == nil && pool == own {
		err = h.StartPool(ctx, own) // it may be defined, but not active yet
	}
	return pool, err
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
	folders, err := u.folders(ctx)
	for t, folder := range folders {
		places[t] = Place{Folder: folder}
	}
	return places, err
}

// folders are those in the annotations of the host's node.
func (u UsageTypes) folders(ctx context.Context) (map[string]string, error) {
	annotations, err := u.Annotations(ctx)
	if err != nil {
		return nil, err
	}
	folders := map[string]string{}
	for name, value := range annotations {
		if t, ok := strings.CutPrefix(name, usagePrefix); ok {
			folders[t] = value
		}
	}
	return folders, nil
}

// find is the pool in the configuration, or the folder in an annotation.
func (u UsageTypes) find(ctx context.Context, usageType string) (pool, folder string, err error) {
	if len(u.Pools) > 0 {
		if pool, ok := u.Pools[usageType]; ok {
			return pool, "", nil
		}
		return "", "", u.unknown(usageType, u.Pools, "in the storage of its configuration")
	}
	if u.Annotations == nil {
		return "", "", fmt.Errorf("host %s has no usage types: add storage = { %s = \"<libvirt storage pool>\" } to it", u.Host, usageType)
	}
	folders, err := u.folders(ctx)
	if err != nil {
		return "", "", err
	}
	if folder, ok := folders[usageType]; ok {
		if !path.IsAbs(folder) || slices.Contains(strings.Split(folder, "/"), "..") {
			return "", "", fmt.Errorf("the annotation %s of the Kubernetes node of host %s is %q, which must be an absolute path, and have no .. in it",
				usagePrefix+usageType, u.Host, folder)
		}
		return "", folder, nil
	}
	return "", "", u.unknown(usageType, folders, "in the annotations "+usagePrefix+"* of its Kubernetes node")
}

func (u UsageTypes) unknown(usageType string, has map[string]string, where string) error {
	names := strings.Join(slices.Sorted(maps.Keys(has)), ", ")
	if names == "" {
		names = "none"
	}
	return fmt.Errorf("host %s has no usage type %q; it has %s, %s", u.Host, usageType, names, where)
}
