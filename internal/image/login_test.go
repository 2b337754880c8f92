package image_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// A registry of a private network that has no TLS is given no password, and is believed only what a digest proves.
func TestContainer_WithoutTLS(t *testing.T) {
	image.WithoutPauses(t)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	want := disk(10_000)
	f := &fake{}
	digest := f.push(nil, tarred(t, plain("disk/d", want)))
	var seen []string
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		seen = append(seen, password)
		f.ServeHTTP(w, r)
	}))
	image.Through(t, &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}})
	const repository = "10.1.2.3:5000/image"
	for name, c := range map[string]image.Container{
		"tag":      {Reference: repository},
		"password": {Reference: repository + "@" + digest, Username: "me", Password: "hunter2"},
	} {
		if _, err := pull(t, c); err == nil || !strings.Contains(err.Error(), "without TLS") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if len(seen) > 0 {
		t.Errorf("the registry was asked with the passwords %q", seen)
	}
	if got, err := pull(t, image.Container{Reference: repository + "@" + digest}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("digest: %d bytes, %v", len(got), err)
	}
}
