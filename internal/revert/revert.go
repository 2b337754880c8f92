// Package revert reverts the steps of an operation that has failed.
package revert

import (
	"context"
	"errors"
	"slices"
	"time"
)

// timeout bounds the revert of one step.
const timeout = 30 * time.Second

// Context is a context to revert a step in, because the operation's own may have timed out or been canceled.
func Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}

// Extend is ctx if it has time left, and otherwise a context with enough time to end what can't be left halfway.
func Extend(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, limited := ctx.Deadline(); ctx.Err() != nil || limited && time.Until(deadline) < timeout {
		return Context(ctx)
	}
	return context.WithCancel(ctx)
}

// Step reverts a step. It is called whether the step succeeded or failed halfway.
type Step func(context.Context) error

// Stack has the reverts of the steps that an operation has begun.
type Stack struct{ steps []Step }

// Push adds the revert of the next step.
func (s *Stack) Push(step Step) { s.steps = append(s.steps, step) }

// Revert reverts the steps, the last one first, and each with a timeout of its own, since an unresponsive host uses up all of it. A step
// that can't be reverted does not keep the others: the error joins all.
func (s *Stack) Revert(ctx context.Context) error {
	var failed []error
	for _, step := range slices.Backward(s.steps) {
		ctx, cancel := Context(ctx)
		failed = append(failed, step(ctx))
		cancel()
	}
	s.steps = nil
	return errors.Join(failed...)
}
