package reservation

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// outage is how long an API server may be unavailable before a reservation fails: it restarts faster.
	outage = 30 * time.Second
	// forever means until the caller's context ends.
	forever time.Duration = 1<<63 - 1
)

// backoff is short at first, since most conflicts are resolved by the next try, and its jitter spreads concurrent reservations of one
// claim.
var backoff = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 3 * time.Second}

// retry calls try until it returns no error that can be retried. Conflicts are retried until ctx ends, and other errors for at most
// timeout since the start or the last conflict. When ctx ends, the last error is kept.
func retry(ctx context.Context, timeout time.Duration, try func(context.Context) (again bool, err error)) error {
	var last error
	answered := time.Now()
	err := backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		again, err := try(ctx)
		last = err
		if err == nil || !again {
			return true, err
		}
		if apierrors.IsConflict(err) {
			answered = time.Now()
		}
		if since := time.Since(answered); since > timeout {
			return true, fmt.Errorf("tried for %s: %w", since.Round(time.Second), err)
		}
		return false, nil
	})
	switch {
	case ctx.Err() == nil || !errors.Is(err, ctx.Err()) || last == nil:
		return err
	case errors.Is(last, ctx.Err()):
		return last // it names the request
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), last)
}

// isTransient reports whether a retry can help. Errors of the API server are classified by their code; all others mean that it did not
// answer, except an untrusted certificate.
func isTransient(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || status.Status().Code >= http.StatusInternalServerError
	}
	var untrusted *tls.CertificateVerificationError
	return err != nil && !errors.As(err, &untrusted)
}
