package host

import (
	"cmp"
	"sync"

	"golang.org/x/sync/errgroup"
)

// inFlight is how many calls of one list wait for their replies at the same time. libvirtd works on five of a connection
// (max_client_requests), and reads no more of it meanwhile: one is left for others, such as the sign of life of a creation.
const inFlight = 4

// together calls all functions at the same time, which don't depend on one another, and returns the error of the first one that has one.
func together(all ...func() error) error {
	failed := make([]error, len(all))
	var group sync.WaitGroup
	for i, f := range all {
		group.Go(func() { failed[i] = f() })
	}
	group.Wait()
	return cmp.Or(failed...)
}

// pipelined calls f for each of all, and returns the results in the same order. The calls that f makes are sent before the replies to those
// of others have come, because a reply takes as long as the way to the host.
func pipelined[T, R any](all []T, f func(T) (R, error)) ([]R, error) {
	results := make([]R, len(all))
	var group errgroup.Group
	group.SetLimit(inFlight)
	for i, one := range all {
		group.Go(func() (err error) {
			results[i], err = f(one)
			return err
		})
	}
	return results, group.Wait()
}
