package claim

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// glusterfs translates the in-tree type, which Kubernetes no longer mounts but still stores. Its path is the name of the GlusterFS volume,
// optionally with a folder.
func (q request) glusterfs(ctx context.Context, r ObjectReader) (location, error) {
	if err := q.folder(); err != nil {
		return location{}, err
	}
	path, err := source.Path("/" + strings.Trim(q.pv.Spec.Glusterfs.Path, "/"))
	if err != nil {
		return location{}, q.ofVolume("path", err)
	}
	name, folder, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if err := source.CheckName(name); err != nil {
		return location{}, q.ofVolume("the GlusterFS volume in the path", err)
	}
	servers, err := q.glusterServers(ctx, r)
	if err != nil {
		return location{}, err
	}
	return location{volume: source.GlusterVolume(servers, name, join(folder), nil), diskImage: true}, nil
}

// glusterServers returns the addresses of the Endpoints. Their ports are ignored: Kubernetes requires one, and users write 1.
func (q request) glusterServers(ctx context.Context, r ObjectReader) ([]volume.Server, error) {
	s := q.pv.Spec.Glusterfs
	namespace := q.claim.Namespace
	if s.EndpointsNamespace != nil && *s.EndpointsNamespace != "" {
		namespace = *s.EndpointsNamespace
	}
	endpoints, err := r.Endpoints(ctx, namespace, s.EndpointsName)
	switch {
	case apierrors.IsNotFound(err):
		return nil, source.NotReadyf("the Endpoints %s/%s with the GlusterFS servers of the PersistentVolume %s do not exist: %w",
			namespace, s.EndpointsName, q.pv.Name, err)
	case apierrors.IsForbidden(err):
		return nil, source.Errorf("",
			"the Endpoints %s/%s with the GlusterFS servers of the PersistentVolume %s may not be read: permit it: %w",
			namespace, s.EndpointsName, q.pv.Name, err)
	case err != nil:
		return nil, err
	}
	var hosts []string
	for _, subset := range endpoints.Subsets {
		for _, address := range subset.Addresses {
			host, err := source.ParseHost(address.IP)
			if err != nil {
				return nil, source.Errorf("", "the Endpoints %s/%s: %w", namespace, s.EndpointsName, err)
			}
			if !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
	}
	if len(hosts) == 0 {
		return nil, source.NotReadyf("the Endpoints %s/%s have no address of a GlusterFS server", namespace, s.EndpointsName)
	}
	return glusterAt(hosts), nil
}

func glusterAt(hosts []string) (servers []volume.Server) {
	for _, host := range hosts {
		port := volume.DefaultPort("gluster")
		servers = append(servers, volume.Server{Host: host, Port: &port})
	}
	return servers
}
