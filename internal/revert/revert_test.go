package revert_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
)

func TestStack_RevertsAllLastFirst(t *testing.T) {
	errFirst, errThird := errors.New("first"), errors.New("third")
	var s revert.Stack
	order := ""
	for n, err := range []error{errFirst, nil, errThird} {
		s.Push(func(ctx context.Context) error {
			order += fmt.Sprint(n)
			if ctx.Err() != nil {
				t.Errorf("step %d is reverted in a context that is done", n)
			}
			if _, bounded := ctx.Deadline(); !bounded {
				t.Errorf("step %d has no timeout", n)
			}
			return err
		})
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Revert(canceled); !errors.Is(err, errFirst) || !errors.Is(err, errThird) || order != "210" {
		t.Errorf("%v, in the order %s", err, order)
	}
	if err := s.Revert(canceled); err != nil || order != "210" {
		t.Errorf("a second revert: %v, in the order %s", err, order)
	}
}
