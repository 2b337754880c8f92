package image_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// A registry of a private network without TLS is sent no password, and its content is accepted only by digest.
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
		if _, err := pull(t, c); err == nil || !strings.Contains(err.Error(), "has no TLS") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if len(seen) > 0 {
		t.Errorf("the registry was asked with the passwords %q", seen)
	}
	if got, err := pull(t, image.Container{Reference: repository + "@" + digest}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("digest: %d bytes, %v", len(got), err)
	}
	if _, err := pull(t, image.Container{Reference: "localhost:5000/image"}); err != nil {
		t.Errorf("this computer: %v", err)
	}
}

// A password is not sent without TLS to a server to which a registry redirects the login, nor to its token server.
func TestContainer_LoginRedirected(t *testing.T) {
	image.WithoutPauses(t)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	plain := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("it was asked for %s with %q", r.URL, r.Header.Get("Authorization"))
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://plain.example/token"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	registry := httptest.NewTLSServer(http.RedirectHandler("http://plain.example/v2/", http.StatusTemporaryRedirect))
	t.Cleanup(registry.Close)
	transport := registry.Client().Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		to := registry
		if strings.HasPrefix(address, "plain.example") {
			to = plain
		}
		return (&net.Dialer{}).DialContext(ctx, network, to.Listener.Addr().String())
	}
	image.Through(t, transport)
	if _, err := pull(t, image.Container{Reference: "example.com/image", Username: "me", Password: "hunter2"}); err == nil || !strings.Contains(err.Error(), "has no TLS") {
		t.Errorf("got %v", err)
	}

	local := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://plain.example/token"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	registry = local
	if _, err := pull(t, image.Container{Reference: "localhost:5000/image", Username: "me", Password: "hunter2"}); err == nil || !strings.Contains(err.Error(), "has no TLS") {
		t.Errorf("got %v", err)
	}
}

// The answer to a login, which may contain the password, is never printed.
func TestContainer_LoginEchoed(t *testing.T) {
	image.WithoutPauses(t)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	const echoed = "2retnuh"
	for name, answer := range map[string]http.HandlerFunc{
		"refusal":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, echoed, http.StatusForbidden) },
		"no token": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"x":"` + echoed + `"}`)) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://10.0.0.1/"+echoed, http.StatusTemporaryRedirect)
		},
		"no location": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://["+echoed)
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
	} {
		for good := range 2 { // number of successful token requests before that answer
			t.Run(fmt.Sprint(name, good), func(t *testing.T) {
				asked := 0
				ref := at(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.URL.Path == "/token" && asked < good:
						asked++
						_, _ = w.Write([]byte(`{"token":"s3cr3t"}`))
					case r.URL.Path == "/token":
						asked++
						answer(w, r)
					default:
						w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token"`)
						w.WriteHeader(http.StatusUnauthorized)
					}
				}))
				_, err := pull(t, image.Container{Reference: ref, Username: "me", Password: "hunter2"})
				if err == nil || strings.Contains(err.Error(), echoed) || asked <= good {
					t.Errorf("asked %d times, got %v", asked, err)
				}
			})
		}
	}
}

// The error of a login with a password has the reason why the registry can't be reached.
func TestContainer_LoginFails(t *testing.T) {
	image.WithoutPauses(t)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	closed := serve(t, http.NotFoundHandler())
	closed.Close()
	refusing := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	for want, to := range map[string]string{"connection refused": closed.Listener.Addr().String(), "has no TLS": refusing.Listener.Addr().String()} {
		image.Through(t, &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, to)
		}})
		for _, registry := range []string{"10.1.2.3:5000", "registry.lan:5000"} {
			_, err := pull(t, image.Container{Reference: registry + "/image", Username: "me", Password: "hunter2"})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: got %v", want, registry, err)
			}
		}
	}
}
