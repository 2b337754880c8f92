package lab

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestForward_PassesOnUntilItIsClosed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	f, err := newForward(t.Context(), netip.MustParseAddr("127.0.0.2"), strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	open, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	if _, err := fmt.Fprint(open, "POST / HTTP/1.1\r\nHost: lab\r\nContent-Length: 4\r\n\r\ndata"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 15)
	if _, err := io.ReadFull(open, answer); err != nil || string(answer) != "HTTP/1.1 200 OK" {
		t.Errorf("the answer is %q, %v", answer, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	// The connection ends, whether or not all of the answer was read.
	_, _ = io.Copy(io.Discard, open)
	if _, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}
