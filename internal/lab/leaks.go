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
	listers := make([]func(context.Context) ([]string, error), 0, 4+len(lanHosts)+len(l.Hosts))
	listers = append(listers, l.Cluster.inventory, listOnDemand(defaultConfigHost, &l.defaultConfig),
		listOnDemand(networkedHost, &l.networked), listOnDemand(remoteHost, &l.remote))
	for n, name := range lanHosts {
		listers = append(listers, listOnDemand(name, &l.lan[n]))
	}
	for _, h := range l.Hosts {
		listers = append(listers, h.inventory)
	}
	seen := make([][]string, len(listers))
	group, ctx := errgroup.WithContext(ctx)
	for i, list := range listers {
		group.Go(func() (err error) {
			seen[i], err = list(ctx)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("list what there is: %w", err)
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
