package dynamic

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/direct"
)

// serve is a server with a handler, as a URL with a token reaches it.
func serve(t *testing.T, handle http.HandlerFunc) Server {
	t.Helper()
	web := httptest.NewTLSServer(handle)
	t.Cleanup(web.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	s, err := URL{Address: web.URL + "/volume", CA: ca, Token: "let-me-in"}.Server("key-1", "vms")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const claimAnswer = "pvc: {claimname: made}"

func TestServer_MakeAndRemove(t *testing.T) {
	var seen []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, strings.Join([]string{
			r.Method, r.URL.String(), r.Header.Get("Idempotency-Key"), r.Header.Get("Virtclaim-Protocol"), r.Header.Get("Authorization"),
		}, " "))
		if r.Method == http.MethodPut && len(seen) == 1 {
			w.WriteHeader(http.StatusCreated)
		}
		if r.Method == http.MethodPut {
			_, _ = fmt.Fprint(w, claimAnswer)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	for n := range 2 {
		a, isNew, err := s.Make(t.Context(), map[string]string{"size": "1Gi", "name": "a b"})
		if err != nil || a.Claim != "made" || isNew != (n == 0) {
			t.Errorf("request %d: %v %v %v", n, a, isNew, err)
		}
	}
	if err := s.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	put := "PUT /volume?name=a+b&size=1Gi key-1 v1 Bearer let-me-in"
	if want := []string{put, put, "DELETE /volume key-1 v1 Bearer let-me-in"}; strings.Join(seen, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", seen)
	}
}

// "Not yet", and an API server that does not reach the pod, are asked again.
func TestServer_AsksAgain(t *testing.T) {
	for name, handle := range map[string]func(http.ResponseWriter){
		"accepted": func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) },
		"busy":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"pod away": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"error trying to reach service","code":503}`)
		},
		"cut": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if asked++; asked == 1 {
					w.Header().Set("Retry-After", "0")
					handle(w)
					return
				}
				_, _ = fmt.Fprint(w, claimAnswer)
			})
			if a, _, err := s.Make(t.Context(), nil); err != nil || a.Claim != "made" {
				t.Errorf("got %v, %v", a, err)
			}
		})
	}
}

func TestServer_Refused(t *testing.T) {
	tests := map[string]struct {
		handle http.HandlerFunc
		wrong  string
	}{
		"bad request": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no such\nparameter", http.StatusBadRequest)
		}, `(400 Bad Request): "no such\nparameter"`},
		"not found": {http.NotFound, "404"},
		"broken": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "disk on fire", http.StatusInternalServerError)
		}, "disk on fire"},
		"10 MB": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.Repeat("A", 10<<20)))
		}, "more than 64 KiB"},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(strings.Repeat("A", 64<<10))); err != nil {
					return
				}
			}
		}, "more than 64 KiB"},
		"forbidden by the API server": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"may not proxy","reason":"Forbidden","code":403}`)
		}, "may not proxy"},
		"repeats the token as the API server": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","message":"\u001b[2J%s"}`, r.Header.Get("Authorization"))
		}, `403: "\x1b[2JBearer ***"`},
		"repeats the token in an answer": {func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				w.WriteHeader(http.StatusConflict)
			}
			_, _ = fmt.Fprintf(w, "%q: 1", r.Header.Get("Authorization"))
		}, "can't be used"},
		"repeats the token without end": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, strings.Repeat(r.Header.Get("Authorization")+" ", 1<<14))
		}, "more than 64 KiB"},
		"repeats the token": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("Authorization"), http.StatusUnauthorized)
		}, `"Bearer ***"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tt.handle)
			_, _, err := s.Make(t.Context(), nil)
			if err == nil || !strings.Contains(err.Error(), tt.wrong) || strings.Contains(err.Error(), "let-me-in") {
				t.Errorf("got %v", err)
			}
			if err := s.Remove(t.Context()); err == nil {
				t.Error("the volume counts as removed")
			}
		})
	}
}

// An answer that leads elsewhere must not get the token.
func TestServer_FollowsNoRedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("got %v", r.Header) }))
	t.Cleanup(other.Close)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if _, _, err := s.Make(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("got %v", err)
	}
}

func TestServer_HangsUntilTimeout(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := s.Make(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "has not answered PUT /volume in time") {
		t.Errorf("got %v", err)
	}
}

// A look makes and removes no volume, whatever the server answers: one that does not know the header answers 201 each time.
func TestServer_Find(t *testing.T) {
	var asked []string
	status, body := http.StatusOK, claimAnswer
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.Header.Get("If-Match"))
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	})
	known := Answer{Claim: "made", Namespace: "vms"}
	moved := Answer{Claim: "moved", Namespace: "vms"}
	for _, tt := range []struct {
		status int
		known  string
		isNew  bool
		lost   bool
	}{
		{http.StatusOK, known.Fingerprint(), false, false},
		{http.StatusOK, moved.Fingerprint(), false, false},
		{http.StatusOK, "", false, false},
		{http.StatusCreated, known.Fingerprint(), true, false},
		{http.StatusCreated, moved.Fingerprint(), true, true},
		{http.StatusCreated, "", true, true},
		{http.StatusPreconditionFailed, known.Fingerprint(), false, true},
	} {
		status = tt.status
		a, isNew, err := s.Find(t.Context(), nil, tt.known)
		if errors.Is(err, ErrLost) != tt.lost || err == nil && a != known || isNew != tt.isNew {
			t.Errorf("%d, known as %q: %v, %v, %v", tt.status, tt.known, a, isNew, err)
		}
	}
	status, body = http.StatusCreated, "nonsense"
	if _, _, err := s.Find(t.Context(), nil, known.Fingerprint()); err == nil {
		t.Error("nonsense is an answer")
	}
	for _, a := range asked {
		if a != "PUT *" {
			t.Errorf("it was asked %s", a)
		}
	}
}

func TestAnswer_Fingerprint(t *testing.T) {
	a := Answer{ISCSI: &direct.ISCSI{Portal: "192.0.2.7:3260", IQN: "iqn.2026-01.org.example:a", LUN: 1}}
	same, other := Answer{ISCSI: new(*a.ISCSI)}, Answer{ISCSI: new(*a.ISCSI)}
	other.ISCSI.LUN = 2
	if a.Fingerprint() != same.Fingerprint() || a.Fingerprint() == other.Fingerprint() {
		t.Errorf("%s, %s and %s", a.Fingerprint(), same.Fingerprint(), other.Fingerprint())
	}
	if none := (*Answer)(nil).Fingerprint(); none != "" {
		t.Errorf("no answer has %q", none)
	}
}

func TestServer_AlreadyRemoved(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	if err := s.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCheckURL(t *testing.T) {
	for _, wrong := range []string{"volumes", "ftp://a/volume", "https://user:password@a/volume", "https://a/volume?size=1", "https:///volume"} {
		if err := CheckURL(wrong); err == nil || strings.Contains(err.Error(), "password@") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if err := CheckURL("https://a:8443/volume"); err != nil {
		t.Error(err)
	}
}

type secrets map[string][]byte

func (s secrets) Secret(context.Context, string, string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: s}, nil
}

func TestURL_ReadSecret(t *testing.T) {
	var u URL
	if err := u.ReadSecret(t.Context(), secrets{"token": []byte("let-me-in\n")}, source.SecretRef{}); err != nil || u.Token != "let-me-in" {
		t.Errorf("got %q, %v", u.Token, err)
	}
	if err := u.ReadSecret(t.Context(), secrets{"password": []byte("x")}, source.SecretRef{Namespace: "a", Name: "b"}); err == nil {
		t.Error("it has neither")
	}
}
