package direct

import (
	"context"
	"errors"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Gluster is a raw image on a volume of GlusterFS.
type Gluster struct {
	// Servers are some of the servers that have the volume, as host or host:port; the port defaults to 24007.
	Servers []string
	// Volume is the name of the volume.
	Volume string
	// Path is the path of the image in the volume, with or without a leading slash.
	Path string
}

// Validate checks everything that can be checked offline. It joins one source.Error for each invalid attribute.
func (g Gluster) Validate() error {
	_, err := g.Storage()
	return err
}

// Storage returns the image, without capacity.
func (g Gluster) Storage() (volume.Volume, error) {
	var w fieldErrors
	servers := g.servers(&w)
	w.add("volume", source.CheckName(g.Volume))
	path, err := source.FilePath("/" + g.Path)
	w.add("path", err)
	if err := w.err(); err != nil {
		return volume.Volume{}, err
	}
	return source.GlusterVolume(servers, g.Volume, path, nil), nil
}

func (g Gluster) servers(w *fieldErrors) (servers []volume.Server) {
	if len(g.Servers) == 0 {
		w.add("servers", errors.New("has no server in it"))
	}
	var seen []string
	for _, s := range g.Servers {
		server, err := source.ParseServer(s, "gluster")
		w.add("servers", err)
		if err == nil && !slices.Contains(seen, s) {
			servers, seen = append(servers, server), append(seen, s)
		}
	}
	return servers
}

// Resolve returns the volume. It needs no other system.
func (g Gluster) Resolve(context.Context, source.SecretReader) (source.Resolved, error) {
	return resolved(g.Storage())
}
