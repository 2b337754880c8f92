//go:build linux

package main

import (
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
)

const (
	firstBackoff   = time.Second
	longestBackoff = time.Minute
	// A program that has run so long did not fail at once.
	goodRun = 10 * time.Second
)

func restarts(policy string, code int) bool {
	return policy == guestinit.RestartAlways || policy == guestinit.RestartOnFailure && code != 0
}

// A backoff keeps a program that always fails from using up the host.
type backoff struct{ last time.Duration }

// next returns how long to wait after a run of that length.
func (b *backoff) next(ran time.Duration) time.Duration {
	if ran >= goodRun || b.last == 0 {
		b.last = firstBackoff
	} else {
		b.last = min(2*b.last, longestBackoff)
	}
	return b.last
}
