package lab

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Snapshot lists the objects on the hosts and in the cluster, in sorted lines: domains and their jobs, pools, volumes, secrets, and the
// state of guests beside their disks; claims, PersistentVolumes, pods and Kubernetes' secrets, with finalizers and annotations.
type Snapshot []string

// Snapshot lists the objects of every host and of the cluster. It is an error if one of them does not answer.
func (l *Lab) Snapshot(ctx context.Context) (Snapshot, error) {
	looks := make([]func(context.Context) ([]string, error), 0, 4+len(lanHosts)+len(l.Hosts))
	looks = append(looks, l.Cluster.look, lookAtLate(defaultConfigHost, &l.defaultConfig), lookAtLate(networkedHost, &l.networked), lookAtLate(remoteHost, &l.remote))
	for n, name := range lanHosts {
		looks = append(looks, lookAtLate(name, &l.lan[n]))
	}
	for _, h := range l.Hosts {
		looks = append(looks, h.look)
	}
	seen := make([][]string, len(looks))
	group, ctx := errgroup.WithContext(ctx)
	for i, look := range looks {
		group.Go(func() (err error) {
			seen[i], err = look(ctx)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("look for what there is: %w", err)
	}
	all := slices.Concat(seen...)
	slices.Sort(all)
	return all, nil
}

// Diff lists the objects that were created and removed between s and after; empty when they are the same.
func (s Snapshot) Diff(after Snapshot) []string {
	var lines []string
	for _, thing := range after {
		if !slices.Contains(s, thing) {
			lines = append(lines, thing+" was not there before")
		}
	}
	for _, thing := range s {
		if !slices.Contains(after, thing) {
			lines = append(lines, thing+" is gone")
		}
	}
	return lines
}
