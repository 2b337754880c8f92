package artefact

import (
	"os"
	"testing"
	"time"
)

// realCache skips tests of real systems unless TF_ACC is set, and returns the
// folder for what they build.
func realCache(t *testing.T) string {
	t.Helper()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("runs real systems; set TF_ACC=1 to have it")
	}
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
