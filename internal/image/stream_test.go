package image_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// Memory use does not depend on the size of an image.
func TestStream_BoundedMemory(t *testing.T) {
	const size = 1 << 30
	zeros := make([]byte, 1<<20)
	packed := slices.Repeat(gzipped(t, zeros), 64)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/packed" {
			_, _ = w.Write(packed)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(size))
		for range size / len(zeros) {
			_, _ = w.Write(zeros)
		}
	})).URL
	for path, want := range map[string]int64{"/plain": size, "/packed": 64 << 20} {
		start := heap()
		r, err := image.URL{URL: url + path}.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var read int64
		for more := int64(1); more > 0; read += more {
			if more, err = io.CopyN(io.Discard, r, 64<<20); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			if used := heap(); used > start+32<<20 {
				t.Fatalf("%s takes %d MiB after %d", path, (used-start)>>20, read)
			}
		}
		if err := r.Close(); err != nil || read != want {
			t.Errorf("%s has %d bytes, %v", path, read, err)
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// Closing a stream early leaves no goroutines and files behind.
func TestStream_CloseEndsRead(t *testing.T) {
	layer := tarred(t, plain("disk/d", disk(8<<20)))
	f := &fake{}
	f.push(nil, layer)
	container, local := image.Container{Reference: at(t, f)}, image.LocalFile{Path: file(t, layer[512:])}
	web := image.URL{URL: serve(t, &server{content: layer[512:]}).URL}
	digest, err := container.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	image.CloseIdle()
	for name, open := range map[string]func() (io.ReadCloser, error){
		"a container": func() (io.ReadCloser, error) { return container.Open(t.Context(), digest) },
		"a URL":       func() (io.ReadCloser, error) { return web.Open(t.Context()) },
		"a URL that is blocked": func() (io.ReadCloser, error) {
			return image.URL{URL: blocked(t, true)}.Open(t.Context())
		},
		"a file": func() (io.ReadCloser, error) { return local.Open(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			r, err := open()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(io.Discard, r, 1000); err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Read(make([]byte, 1)); err == nil {
				t.Error("it reads on")
			}
			// All goroutines of this package must end; their stacks contain its name.
			for end := time.Now().Add(5 * time.Second); ; {
				image.CloseIdle()
				stacks := make([]byte, 1<<20)
				stacks = stacks[:runtime.Stack(stacks, true)]
				if !bytes.Contains(stacks, []byte("internal/image.stream")) && !bytes.Contains(stacks, []byte("http.(*persistConn)")) {
					return
				}
				if time.Now().After(end) {
					t.Fatalf("it goes on:\n%s", stacks)
				}
				<-time.After(10 * time.Millisecond)
			}
		})
	}
}

// FuzzUnpack unpacks arbitrary archives.
func FuzzUnpack(f *testing.F) {
	f.Add(xzed(disk(100), dictionary1MiB))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03\x00"))
	f.Add([]byte("\x28\xb5\x2f\xfd\x04\x58\x09\x00\x00abc"))
	path := filepath.Join(f.TempDir(), "image")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readAll(image.LocalFile{Path: path, Limit: 1 << 20}.Open(t.Context()))
		if err != nil && (!errors.Is(err, image.ErrUntrusted) || strings.Contains(err.Error(), "can't be read")) {
			t.Error(err)
		}
	})
}

// The error of a server that stays away wraps io.EOF, which the reader must not take for the end of the image.
func TestStream_BrokenConnectionIsError(t *testing.T) {
	for name, refuse := range map[string]func(w http.ResponseWriter){
		"in the middle": func(http.ResponseWriter) {},
		"before the answer": func(w http.ResponseWriter) {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = conn.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			image.WithoutPauses(t)
			s := &server{content: bytes.Repeat([]byte("content."), 1<<17), ranges: "ETag", cuts: []int{300000, 0, 0, 0, 0, 0, 0}}
			s.before = func(n int, w http.ResponseWriter, _ *http.Request) bool {
				if n > 0 {
					refuse(w)
				}
				return n > 0 && name == "before the answer"
			}
			r, err := image.URL{URL: serve(t, s).URL}.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			got, err := io.ReadAll(r)
			if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v after %d bytes", err, len(got))
			}
		})
	}
}
