package content_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// orphaned is a host whose libvirtd crashed while a process held its mutex: the domain exists, and does not end.
type orphaned struct{ *fakeHost }

func (orphaned) WaitStopped(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

func newOrphaned(t *testing.T) orphaned {
	t.Helper()
	text, err := domainxml.BuildMutex("6f1b8a8e-7a51-4d0f-9a0e-0a8f3c8f0c55")
	if err != nil {
		t.Fatal(err)
	}
	h := orphaned{newHost()}
	if _, err := h.Hold(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestMutex_AbandonedIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, began := newOrphaned(t), time.Now()
		made, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, over("web", bytesOf(qcow2(1<<20))), quiet)
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < 2*time.Minute || waited > 3*time.Minute {
			t.Errorf("it waited %s for somebody who may work for a minute", waited)
		}
		onlyHas(t, h.fakeHost, made)
	})
}

func TestMutex_WaitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newOrphaned(t)
		base := content.BasePrefix + strings.Repeat("0", 64)
		h.volumes["ssd/"+base] = &fakeVolume{StorageVolume: host.StorageVolume{Pool: "ssd", Name: base}}
		gone := errors.New("Ctrl-C")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(gone) })
		began := time.Now()
		if err := (&content.Creator{Owner: "prod"}).CollectGarbage(ctx, "a", h, "ssd", base); err == nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if len(h.domains) != 1 {
			t.Errorf("it took away what another one may have: %v", h.domains)
		}
	})
}
