//go:build acc

package artefact

import (
	"os"
	"testing"
	"time"
)

// realCache is the folder for what the tests build.
func realCache(t *testing.T) string {
	t.Helper()
	if cache := os.Getenv("VIRTCLAIM_LAB_CACHE"); cache != "" {
		return cache
	}
	return t.TempDir()
}

// within returns the value from done, and fails the test if that takes longer
// than limit.
func within[T any](t *testing.T, limit time.Duration, what string, done <-chan T) T {
	t.Helper()
	select {
	case value := <-done:
		return value
	case <-time.After(limit):
		t.Fatalf("%s did not happen within %v", what, limit)
		panic("unreachable")
	}
}
