package image_test

import (
	"net/http"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// A signature is secret in any form, in the requested address and in those of redirects.
func TestRedact_HidesQuery(t *testing.T) {
	image.WithoutPauses(t)
	redirects := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			w.Header().Set("Location", "ftp://me'\"s3cr3t@example.org/?a'\"s3cr3t")
			w.WriteHeader(http.StatusFound)
		}
	})).URL
	forbidden := serve(t, &server{before: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	}}).URL
	for _, query := range []string{"sig=a's3cr3t", `sig=a"s3cr3t`, "sig=a%27s3cr3t", "sig='s3cr3t':", "sig=a%20s3cr3t&b", "sig=a s3cr3t", "?s3cr3t"} {
		for _, address := range []string{redirects + "/empty", redirects + "/elsewhere", forbidden, "http://127.0.0.1:1/i"} {
			_, err := readAll(image.URL{URL: address + "?" + query}.Open(t.Context()))
			if err == nil {
				t.Errorf("%s?%s has no error", address, query)
			}
			hidesSecrets(t, err)
		}
	}
}
