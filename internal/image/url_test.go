package image_test

import (
	"bytes"
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

func TestURL(t *testing.T) {
	want := disk(300_000)
	for name, served := range map[string][]byte{
		"raw": want, "gzip": gzipped(t, want), "zstd": zstandard(t, want), "xz": xzed(want, dictionary64MiB),
		"gzip in parts":             slices.Concat(gzipped(t, want[:1000]), gzipped(t, want[1000:])),
		"zstd in parts":             slices.Concat(zstandard(t, want[:1000]), zstandard(t, want[1000:])),
		"xz in parts":               slices.Concat(xzed(want[:1000], dictionary1MiB), xzed(want[1000:], dictionary1MiB)),
		"zstd with a frame to skip": slices.Concat([]byte("\x50\x2a\x4d\x18\x02\x00\x00\x00ab"), zstandard(t, want)),
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{content: served}
			url := serve(t, s).URL + "/image"
			for _, sum := range []string{"", sha(served), strings.ToUpper(sha(served)), fmt.Sprintf("sha512:%x", sha512.Sum512(served))} {
				got, err := readAll(image.URL{URL: url, Checksum: sum, Limit: int64(len(want))}.Open(t.Context()))
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("with %q: %d bytes, %v", sum, len(got), err)
				}
			}
			if encoding := s.seen[0].Get("Accept-Encoding"); encoding != "identity" {
				t.Errorf("it asks for the encoding %q", encoding)
			}
		})
	}
}

// The image is complete, wherever the connection breaks off.
func TestURL_Resumes(t *testing.T) {
	image.WithoutPauses(t)
	want := disk(100_000)
	last := len(want) - 1
	for _, cuts := range [][]int{{0}, {1}, {511}, {len(want) / 2}, {last}, {0, 0, 0, 0}, {1, 1000, 2, 3}, {last, 0, 0}, {50_000, 10, 10, 10, 10, 10, 10}} {
		for _, ranges := range []string{"", "ETag", "weak ETag", "Last-Modified"} {
			t.Run(fmt.Sprintf("%v %s", cuts, ranges), func(t *testing.T) {
				s := &server{content: want, ranges: ranges, cuts: cuts}
				got, err := readAll(image.URL{URL: serve(t, s).URL}.Open(t.Context()))
				if ranges != "ETag" && ranges != "Last-Modified" && len(cuts) > maxFailures {
					// Read from the start each time, it makes no progress with ten bytes at a time.
					if err == nil || !strings.Contains(err.Error(), "the download broke off") {
						t.Errorf("%d bytes, %v", len(got), err)
					}
					return
				}
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%d bytes, %v", len(got), err)
				}
				if s.requests() != len(cuts)+1 {
					t.Errorf("%d requests", s.requests())
				}
				if then := s.seen[1].Get("If-Range") != ""; then != (cuts[0] > 0 && (ranges == "ETag" || ranges == "Last-Modified")) {
					t.Errorf("the second request is %v", s.seen[1])
				}
			})
		}
	}
}

// Redirects may lead each request to another mirror. What one of them answers is no reason to give up what another one may have; what was
// read already is the beginning of the whole, or a checksum decides.
func TestURL_ContinuesAtOtherMirrors(t *testing.T) {
	image.WithoutPauses(t)
	want, other := disk(100_000), disk(100_008)[8:]
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	ignoresIfRange := func(content []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("If-Range")
			(&server{content: content, ranges: "Last-Modified"}).ServeHTTP(w, r)
		}
	}
	for name, c := range map[string]struct {
		second http.Handler
		// unchecked and checked are the errors without a checksum and with one, if it ends there.
		unchecked, checked string
	}{
		"forbids it":                    {second: status(403)},
		"does not have it":              {second: status(404)},
		"no longer has it":              {second: status(410)},
		"has no such range":             {second: status(416)},
		"is not there":                  {second: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })},
		"has another validator":         {second: &server{content: want, ranges: "Last-Modified"}},
		"has no ranges":                 {second: &server{content: want}},
		"ignores If-Range":              {second: ignoresIfRange(want)},
		"has another content":           {second: &server{content: other}, unchecked: "it changed while it was read"},
		"has a shorter content":         {second: &server{content: want[:60_000]}, unchecked: "it changed while it was read"},
		"has ranges of a shorter one":   {second: ignoresIfRange(want[:60_000]), unchecked: "answers with the range"},
		"has too short a content":       {second: &server{content: want[:10], ranges: "ETag"}}, // it answers 416
		"has ranges of another content": {second: ignoresIfRange(other), checked: "its checksum is"},
	} {
		for sum, why := range map[string]string{"": c.unchecked, sha(want): c.checked} {
			t.Run(name+" "+sum, func(t *testing.T) {
				mirrors := []http.Handler{&server{content: want, ranges: "ETag", cuts: []int{50_000}}, c.second, &server{content: want, ranges: "ETag"}}
				n := 0
				url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/" {
						http.Redirect(w, r, fmt.Sprintf("/%d", min(n, 2)), http.StatusFound)
						n++
						return
					}
					mirrors[r.URL.Path[1]-'0'].ServeHTTP(w, r)
				})).URL
				got, err := readAll(image.URL{URL: url + "/", Checksum: sum}.Open(t.Context()))
				if why != "" {
					refused(t, err, why)
				} else if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			})
		}
	}
}

// A file that another one replaces in the meantime, at the only server, is told from it by what was read already.
func TestURL_ReplacedMeanwhile(t *testing.T) {
	image.WithoutPauses(t)
	want := disk(100_000)
	for name, then := range map[string][]byte{"another content": disk(100_008)[8:], "a longer one": disk(100_008), "a shorter one": want[:60_000]} {
		t.Run(name, func(t *testing.T) {
			var begun bool
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s := &server{content: then, ranges: "Last-Modified"}
				if !begun {
					s = &server{content: want, ranges: "ETag", cuts: []int{50_000}}
				}
				begun = true
				r.Header.Del("If-Range")
				s.ServeHTTP(w, r)
			})).URL
			for _, sum := range []string{"", sha(want)} {
				begun = false
				_, err := readAll(image.URL{URL: url, Checksum: sum}.Open(t.Context()))
				refused(t, err, "")
			}
		})
	}
}

const maxFailures = 5

func TestURL_AlwaysBroken(t *testing.T) {
	pauses := image.WithoutPauses(t)
	s := &server{content: disk(1000), ranges: "ETag", cuts: []int{100, 0, 0, 0, 0, 0, 0, 0}}
	_, err := readAll(image.URL{URL: serve(t, s).URL}.Open(t.Context()))
	if err == nil || !strings.Contains(err.Error(), "the download broke off 5 times after 100 bytes") || errors.Is(err, image.ErrUntrusted) {
		t.Errorf("got %v", err)
	}
	if len(*pauses) != maxFailures-1 || !slices.IsSorted(*pauses) || (*pauses)[3] < 7*time.Second {
		t.Errorf("it waits %v", *pauses)
	}
}

func TestURL_BusyServer(t *testing.T) {
	pauses := image.WithoutPauses(t)
	want := disk(1000)
	s := &server{content: want, before: func(n int, w http.ResponseWriter, _ *http.Request) bool {
		answers := []func(){
			func() { panic(http.ErrAbortHandler) },
			func() { w.WriteHeader(http.StatusServiceUnavailable) },
			func() { w.Header().Set("Retry-After", "30"); w.WriteHeader(http.StatusTooManyRequests) },
			func() { w.Header().Set("Retry-After", "86400"); w.WriteHeader(http.StatusTooManyRequests) },
		}
		if n < len(answers) {
			answers[n]()
		}
		return n < len(answers)
	}}
	got, err := readAll(image.URL{URL: serve(t, s).URL}.Open(t.Context()))
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if p := *pauses; len(p) != 4 || p[0] > p[1] || p[1] > 3*time.Second || p[2] != 30*time.Second || p[3] != time.Minute {
		t.Errorf("it waits %v", p)
	}
}

func TestURL_RefusingServer(t *testing.T) {
	image.WithoutPauses(t)
	for code, want := range map[int]string{
		401: "log in", 403: "whether a signed URL has run out", 404: "Check the address", 410: "is not there", 418: "418 I'm a teapot", 500: "Try again later",
		206: "206 Partial Content", 416: "416", 304: "304", 204: "204",
	} {
		s := &server{before: func(_ int, w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return true }}
		_, err := readAll(image.URL{URL: serve(t, s).URL}.Open(t.Context()))
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, image.ErrUntrusted) {
			t.Errorf("%d gives %v", code, err)
		}
		if tries := s.requests(); (tries == 1) != (code != 500) {
			t.Errorf("%d was asked for %d times", code, tries)
		}
	}
}

func TestURL_UnreachableServer(t *testing.T) {
	pauses := image.WithoutPauses(t)
	s := httptest.NewServer(nil)
	s.Close()
	const want = "connection refused. The image is read by the computer that runs Terraform"
	if _, err := readAll(image.URL{URL: s.URL}.Open(t.Context())); err == nil || !strings.Contains(err.Error(), want) || len(*pauses) != maxFailures-1 {
		t.Errorf("got %v after %v", err, *pauses)
	}
}

// A request to a server that stops in the middle is repeated.
func TestURL_StallingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		image.WithoutPauses(t)
		want := disk(1000)
		s := &server{content: want, ranges: "ETag", before: func(n int, w http.ResponseWriter, r *http.Request) bool {
			switch n {
			case 0:
				w.Header().Set("ETag", `"v1"`)
				w.Header().Set("Content-Length", "1000")
				_, _ = w.Write(want[:10])
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			case 1:
				<-r.Context().Done()
			}
			return n < 2
		}}
		start := time.Now()
		got, err := readAll(image.URL{URL: servePiped(t, s)}.Open(t.Context()))
		if err != nil || !bytes.Equal(got, want) || s.requests() != 3 {
			t.Errorf("%d bytes after %d requests, %v", len(got), s.requests(), err)
		}
		if took := time.Since(start); took != 2*time.Minute {
			t.Errorf("two requests of a minute took %s", took)
		}
	})
}

// A slow reader does not count as a stalled server.
func TestURL_SlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := disk(8 << 20)
		s := &server{content: want}
		r, err := image.URL{URL: servePiped(t, s)}.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Minute)
		if got, err := readAll(r, nil); err != nil || !bytes.Equal(got, want) || s.requests() != 1 {
			t.Errorf("%d bytes after %d requests, %v", len(got), s.requests(), err)
		}
	})
}

func blocked(t *testing.T, afterHeader bool) string {
	t.Helper()
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if afterHeader {
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(disk(5000))
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	})).URL
}

func TestURL_CancelEndsRead(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := image.URL{URL: blocked(t, true)}.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := (image.URL{URL: blocked(t, false)}).Open(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestURL_Progress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := image.LocalFile{Path: file}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if _, err := io.CopyN(io.Discard, r, 512<<10); err != nil {
		t.Fatal(err)
	}
	done, all := r.(interface{ Progress() (int64, int64) }).Progress()
	if done < 512<<10 || all != 1<<20 {
		t.Errorf("%d of %d bytes", done, all)
	}
}
