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
	// outage is how long an API server may be away before a reservation fails: it restarts in less.
	outage = 30 * time.Second
	// forever is until the caller's time is over.
	forever time.Duration = 1<<63 - 1
)

// backoff is short at first, since most conflicts are settled by the next try, and spreads those that want one claim.
var backoff = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 3 * time.Second}

// retry tries until there is no error to try again for. A conflict is tried again until ctx ends, and so is any other error,
// but only as long as the last answer is no older than patience. An end of ctx keeps the last error.
func retry(ctx context.Context, patience time.Duration, try func(context.Context) (again bool, err error)) error {
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
		if since := time.Since(answered); since > patience {
			return true, fmt.Errorf("tried for %s: %w", since.Round(time.Second), err)
		}
		return false, nil
	})
	switch {
	case ctx.Err() == nil || !errors.Is(err, ctx.Err()) || last == nil:
		return err
	case errors.Is(last, ctx.Err()):
		return last // which says what was asked
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), last)
}

// isTransient tells whether asking again can help. The API server's own answers say so by their code; all else is a server
// that did not answer, but for one that is not who it should be.
func isTransient(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || status.Status().Code >= http.StatusInternalServerError
	}
	var untrusted *tls.CertificateVerificationError
	return err != nil && !errors.As(err, &untrusted)
}
