package revert_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

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

func TestExtend_LeavesTimeToEnd(t *testing.T) {
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	long, cancelLong := context.WithTimeout(t.Context(), time.Hour)
	defer cancelLong()
	canceled, cancelNow := context.WithCancel(t.Context())
	cancelNow()
	for name, ctx := range map[string]context.Context{"short": short, "long": long, "canceled": canceled, "unlimited": t.Context()} {
		extended, end := revert.Extend(ctx)
		if deadline, limited := extended.Deadline(); extended.Err() != nil || limited && time.Until(deadline) < 20*time.Second {
			t.Errorf("%s: it ends at %s, %v", name, deadline, extended.Err())
		}
		end()
	}
	extended, end := revert.Extend(long)
	defer end()
	if cancelLong(); extended.Err() == nil {
		t.Error("what has time left can't be canceled any more")
	}
}
