package providerdata_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
)

// A name is waited for while the apply destroys resources, and not for long if it destroys none.
func TestData_RetryTaken(t *testing.T) {
	for name, c := range map[string]struct {
		begins, ends time.Duration
		waits        time.Duration
	}{
		"destroyed":                 {3 * time.Second, 5 * time.Minute, 5 * time.Minute},
		"nothing is destroyed":      {time.Hour, 2 * time.Hour, 10 * time.Second},
		"it is free from the first": {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, began := providerdata.New("", nil, nil), time.Now()
				var all sync.WaitGroup
				all.Go(func() {
					time.Sleep(c.begins)
					done := b.Destroys()
					time.Sleep(c.ends - c.begins)
					done()
				})
				synctest.Wait()
				b.RetryTaken(t.Context(), func() bool { return time.Since(began) < c.ends })
				if waited := time.Since(began); waited != c.waits {
					t.Errorf("it waited for %s, want %s", waited, c.waits)
				}
				all.Wait()
			})
		})
	}
}
