package lab

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Snapshot is all that exists on the hosts and in the cluster, in sorted lines: domains and their jobs, pools, volumes
// and secrets; claims, PersistentVolumes and Kubernetes' secrets, with finalizers and annotations.
type Snapshot []string

// Snapshot looks at every host and at the cluster. One that does not answer is an error.
func (l *Lab) Snapshot(ctx context.Context) (Snapshot, error) {
	looks := make([]func(context.Context) ([]string, error), 0, 3+len(l.Hosts))
	looks = append(looks, l.Cluster.look, lookAt(stockHost, &l.stock), lookAt(wiredHost, &l.wired))
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

// Diff says what was made and what was removed between s and after; nothing when they are the same.
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
