package image

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// WithoutPauses replaces pauses between attempts in a test, and returns their durations.
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

// Through replaces the transport in a test, for example for a server with its own certificate.
func Through(t *testing.T, transport *http.Transport) {
	t.Helper()
	before := network
	t.Cleanup(func() { network = before; transport.CloseIdleConnections() })
	network = watchful{transport}
}

// CloseIdle closes idle connections.
func CloseIdle() {
	network.(watchful).inner.(*http.Transport).CloseIdleConnections()
}
