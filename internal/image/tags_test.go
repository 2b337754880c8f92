package image_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// Waiting for the slow query of another caller must end with the own context.
func TestTags_WaitEndsWithContext(t *testing.T) {
	f := &fake{}
	want := f.push(nil, tarred(t, plain("disk/d", disk(5000))))
	asked, slow := make(chan struct{}, 100), make(chan struct{})
	reference := at(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-slow
		f.ServeHTTP(w, r)
	}))
	var tags image.Tags
	first := make(chan string, 1)
	go func() {
		digest, _ := tags.Resolve(t.Context(), image.Container{Reference: reference})
		first <- digest
	}()
	<-asked
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("Ctrl-C")
	cancel(gone)
	if _, err := tags.Resolve(ctx, image.Container{Reference: reference}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	close(slow)
	if digest := <-first; digest != want {
		t.Errorf("the first who asked got %q", digest)
	}
}
