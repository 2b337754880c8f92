package image

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// WithoutPauses makes pauses between attempts short for a test, and tells what they would have been.
func WithoutPauses(t *testing.T) *[]time.Duration {
	t.Helper()
	var all []time.Duration
	before := pause
	t.Cleanup(func() { pause = before })
	pause = func(ctx context.Context, d time.Duration) error {
		all = append(all, d)
		return ctx.Err()
	}
	return &all
}

// StallAfter has connections of a test be given up sooner.
func StallAfter(t *testing.T, d time.Duration) {
	t.Helper()
	before := stallAfter
	t.Cleanup(func() { stallAfter = before })
	stallAfter = d
}

// Through has a test's connections go another way, as to a server with a certificate of its own.
func Through(t *testing.T, transport *http.Transport) {
	t.Helper()
	before := network
	t.Cleanup(func() { network = before; transport.CloseIdleConnections() })
	network = watchful{transport}
}

// CloseIdle ends connections that are kept for the next request.
func CloseIdle() {
	network.(watchful).inner.(*http.Transport).CloseIdleConnections()
}
