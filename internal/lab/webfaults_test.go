package lab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
)

// someWeb is the web server alone, and a file of it.
func someWeb(t *testing.T, content []byte) (*Web, WebFile) {
	t.Helper()
	known, err := newAuthority("known")
	if err != nil {
		t.Fatal(err)
	}
	web := newWeb(t.TempDir())
	t.Cleanup(func() {
		if err := web.close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := web.start(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	file, err := web.AddContent("images/data.img", content)
	if err != nil {
		t.Fatal(err)
	}
	return web, file
}

// sent is the server's response until the connection ends; err is that of the body.
type sent struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func download(t *testing.T, url, asked string) sent {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if asked != "" {
		request.Header.Set("Range", asked)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return sent{answer.StatusCode, answer.Header, body, err}
}

func TestWeb_CutsConnections(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	web, file := someWeb(t, content)
	url := file.URL("http", web.HTTP)
	web.Cut(file, 300_000, 0, 100)
	for i, step := range []struct {
		asked string
		want  []byte
		cut   bool
	}{
		{"", content[:300_000], true},
		{"", nil, true},
		{"bytes=100-149", content[100:150], false}, // too short for the next offset
		{"bytes=1000-", content[1000:1100], true},
		{"", content, false},
	} {
		got := download(t, url, step.asked)
		if !bytes.Equal(got.body, step.want) || errors.Is(got.err, io.ErrUnexpectedEOF) != step.cut {
			t.Errorf("GET %d: got %d bytes and %v, want %d, cut %t", i+1, len(got.body), got.err, len(step.want), step.cut)
		}
	}
	if got := web.Gets(file); got != 5 {
		t.Errorf("it counts %d GETs, want 5", got)
	}
}

func TestWeb_IgnoresRanges(t *testing.T) {
	web, file := someWeb(t, []byte("content"))
	for _, step := range []struct {
		status        int
		accept, wants string
	}{{http.StatusPartialContent, "bytes", "tent"}, {http.StatusOK, "", "content"}} {
		got := download(t, file.URL("http", web.HTTP), "bytes=3-")
		accept := got.header.Get("Accept-Ranges")
		if got.err != nil || string(got.body) != step.wants || got.status != step.status || accept != step.accept {
			t.Errorf("got %q with status %d and Accept-Ranges %q, %v", got.body, got.status, accept, got.err)
		}
		web.WithoutRanges(file)
	}
}
