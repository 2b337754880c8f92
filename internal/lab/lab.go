// Package lab starts real systems for tests and demonstrations: two libvirt hosts, a Kubernetes API server, an iSCSI server, and on demand
// a Kubernetes node and other storage servers. They run in sandboxes that end with the process that started them, however it ends, and
// touch neither the machine's own libvirt nor its user's Kubernetes configuration.
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

// stopTime limits the revert of a failed start.
var stopTime = Patience(time.Minute)

// Options of a lab.
type Options struct {
	// State is the folder that the lab's own folder is created in; empty means .lab in the checkout.
	State string
	// Log is called at the start of each step that takes more than two seconds; nil means no log.
	Log func(format string, args ...any)
}

// Lab is a running lab.
type Lab struct {
	// Dir is the lab's own folder, which is removed with it.
	Dir string
	// Hosts are host-a and host-b, by name.
	Hosts   map[string]*Host
	Target  *Target
	Cluster *Cluster
	// Guest is an image that machines on these hosts can boot; see package artefact for its features.
	Guest artefact.Image

	folder    *os.File
	authority *authority
	cache     string
	log       func(format string, args ...any)

	nbd           onDemand[*NBD]
	rbd           onDemand[*RBD]
	nfs           onDemand[*NFS]
	gluster       onDemand[*Gluster]
	web           onDemand[*Web]
	registry      onDemand[*Registry]
	loops         onDemand[*loops]
	defaultConfig onDemand[*Host]
	networked     onDemand[*Host]
	lan           [len(lanHosts)]onDemand[*LANHost]
	remote        onDemand[*Remote]
	node          onDemand[*Node]
}

// Start starts a lab. Several can run at once. Building its parts takes minutes the first time, starting it four seconds. When it fails,
// nothing is left.
func Start(ctx context.Context, o Options) (*Lab, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if err := require(ctx); err != nil {
		return nil, err
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	if o.State == "" {
		o.State = filepath.Join(root, ".lab")
	}
	l := &Lab{Hosts: map[string]*Host{"host-a": nil, "host-b": nil}, cache: cacheFolder(root), log: o.Log}
	if l.folder, err = newRunFolder(ctx, o.State); err == nil {
		l.Dir = l.folder.Name()
		err = l.start(ctx)
	}
	if err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		return nil, errors.Join(err, l.Stop(undo))
	}
	return l, nil
}

// Prepare builds the cached parts of a lab.
func Prepare(ctx context.Context, log func(format string, args ...any)) error {
	root, err := Root()
	if err != nil {
		return err
	}
	_, _, err = prepare(ctx, cacheFolder(root), log)
	if err == nil {
		_, err = Kernel(ctx, log)
	}
	return err
}

// cacheFolder is .lab/cache in the checkout, unless the environment has another one, such as one that several checkouts share.
func cacheFolder(root string) string {
	if dir := os.Getenv("VIRTCLAIM_LAB_CACHE"); dir != "" {
		return dir
	}
	return filepath.Join(root, ".lab", "cache")
}

func prepare(ctx context.Context, cache string, log func(string, ...any)) (guest artefact.Image, controlPlane string, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		guest, err = artefact.Guest(ctx, cache, log)
		return err
	})
	group.Go(func() (err error) {
		controlPlane, err = artefact.ControlPlane(ctx, cache, log)
		return err
	})
	return guest, controlPlane, group.Wait()
}

func (l *Lab) start(ctx context.Context) error {
	guest, controlPlane, err := prepare(ctx, l.cache, l.log)
	if err != nil {
		return err
	}
	l.Guest = guest
	if l.authority, err = newAuthority("the lab's authority"); err != nil {
		return err
	}
	if err := l.authority.trustIn(filepath.Join(l.Dir, "certs")); err != nil {
		return err
	}
	l.log("starting two libvirt hosts, a Kubernetes API server and an iSCSI server")
	for name := range l.Hosts {
		l.Hosts[name] = newHost(filepath.Join(l.Dir, name), name, guest)
	}
	letMigrate(l.Hosts)
	l.Hosts[nodeName].start = kubeletScript
	group, ctx := errgroup.WithContext(ctx)
	for _, h := range l.Hosts {
		group.Go(func() error { return h.run(ctx, l.Dir) })
	}
	group.Go(func() (err error) {
		l.Cluster, err = startCluster(ctx, l.folder, filepath.Join(l.Dir, "cluster"), controlPlane)
		return err
	})
	group.Go(func() (err error) {
		l.Target, err = startTarget(ctx, l.Dir, filepath.Join(l.Dir, "target"))
		return err
	})
	return group.Wait()
}

// Stop ends everything that runs in the lab, including guests, and removes its folder.
func (l *Lab) Stop(ctx context.Context) error {
	var group errgroup.Group
	for _, h := range l.Hosts {
		group.Go(func() error { return h.close(ctx) })
	}
	group.Go(func() error { return l.Cluster.Stop(ctx) })
	for _, server := range []closer{
		l.Target, &l.nbd, &l.rbd, &l.nfs, &l.gluster, &l.web, &l.registry, &l.loops, &l.defaultConfig, &l.networked, &l.lan[0], &l.lan[1],
		&l.remote, &l.node,
	} {
		group.Go(func() error { return server.close(ctx) })
	}
	err := group.Wait()
	if l.folder != nil {
		err = errors.Join(err, os.RemoveAll(l.Dir), l.folder.Close())
	}
	if err != nil {
		return fmt.Errorf("stop the lab: %w", err)
	}
	return nil
}
