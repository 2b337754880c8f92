package image_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// server serves a file like a web server, with faults.
type server struct {
	content []byte
	// ranges is the validator of the file if the server supports ranges; "" if it does not.
	ranges string
	// cuts are the offsets after which each answer breaks off; further answers are complete.
	cuts []int
	// before may answer instead, and returns whether it did.
	before func(n int, w http.ResponseWriter, r *http.Request) bool

	mu   sync.Mutex
	seen []http.Header
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	n := len(s.seen)
	s.seen = append(s.seen, r.Header.Clone())
	s.mu.Unlock()
	if s.before != nil && s.before(n, w, r) {
		return
	}
	if n < len(s.cuts) {
		w = &cutWriter{w, s.cuts[n]}
	}
	switch s.ranges {
	case "":
		w.Header().Set("Content-Length", strconv.Itoa(len(s.content)))
		_, _ = w.Write(s.content)
	case "ETag":
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.content))
	case "weak ETag":
		w.Header().Set("ETag", `W/"v1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.content))
	case "Last-Modified":
		http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(s.content))
	}
}

func (s *server) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// cutWriter breaks the connection after a number of bytes.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if w.left >= len(p) {
		w.left -= len(p)
		return w.ResponseWriter.Write(p)
	}
	_, _ = w.ResponseWriter.Write(p[:w.left])
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { image.CloseIdle(); s.Close() })
	return s
}

// servePiped is serve inside of a synctest bubble, where connections are pipes in memory, and time passes only while all wait.
func servePiped(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	l := pipes{make(chan net.Conn), make(chan struct{})}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Hour}
	go func() { _ = s.Serve(l) }()
	transport := &http.Transport{DialContext: l.dial}
	image.Through(t, transport)
	t.Cleanup(func() { transport.CloseIdleConnections(); _ = s.Close() })
	return "http://server.example"
}

// pipes is a listener for connections in memory.
type pipes struct {
	dialled chan net.Conn
	closed  chan struct{}
}

func (p pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.dialled <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialled:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error { close(p.closed); return nil }

func (pipes) Addr() net.Addr { return &net.UnixAddr{Name: "server.example", Net: "pipe"} }
