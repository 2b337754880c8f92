package volume

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

// served is a server of an empty claim.
type served struct {
	*Server
	url, folder string
	filled      int
}

func serve(t *testing.T, change func(s *Server)) *served {
	t.Helper()
	folder := inMemory(t)
	is := &served{folder: folder}
	is.Server = &Server{Claim: Claim{Path: folder, Scratch: inMemory(t)}, Token: "secret", Log: func(string) {}, Done: func(podwire.Filled) { is.filled++ }}
	if change != nil {
		change(is.Server)
	}
	if err := is.Inspect(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(is)
	t.Cleanup(server.Close)
	is.url = server.URL + "/volume"
	return is
}

// ask sends a request with the token and headers, and returns the status and what the answer says.
func (s *served) ask(t *testing.T, method string, body io.Reader, header ...string) (int, podwire.Volume) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret")
	for n := 0; n < len(header); n += 2 {
		req.Header.Set(header[n], header[n+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var said podwire.Volume
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil {
		t.Fatalf("status %d: %v", resp.StatusCode, err)
	}
	return resp.StatusCode, said
}

func (s *served) content(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.folder, diskImage))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestServer_Put(t *testing.T) {
	content := disk(20)
	image := qcow2Of(content, false, false)
	var gz, zst bytes.Buffer
	w := gzip.NewWriter(&gz)
	_, _ = w.Write(content)
	_ = w.Close()
	z, _ := zstd.NewWriter(&zst)
	_, _ = z.Write(image)
	_ = z.Close()
	for name, body := range map[string][]byte{"raw": content, "qcow2": image, "raw.gz": gz.Bytes(), "qcow2.zst": zst.Bytes()} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, nil)
			if status, is := s.ask(t, "GET", nil); status != 200 || is.State != podwire.Empty {
				t.Errorf("%d, %+v", status, is)
			}
			sum := sha256.Sum256(body)
			status, is := s.ask(t, "PUT", bytes.NewReader(body), "Digest", "sha-256="+base64.StdEncoding.EncodeToString(sum[:]))
			if status != 201 || is.State != podwire.IsFilled || is.Capacity != int64(len(content)) || is.Digest != fmt.Sprintf("sha256:%x", sum) || is.Received != int64(len(body)) {
				t.Fatalf("%d, %+v", status, is)
			}
			if !bytes.Equal(s.content(t), content) || s.filled != 1 {
				t.Errorf("equal: %v, filled %d times", bytes.Equal(s.content(t), content), s.filled)
			}
			if status, is := s.ask(t, "PUT", bytes.NewReader(body)); status != 409 || !strings.Contains(is.Error, "content already") ||
				!strings.Contains(is.Error, "data that is not recognized") {
				t.Errorf("again: %d, %+v", status, is)
			}
			// A new pod sees the same.
			after := &Server{Claim: s.Claim}
			if err := after.Inspect(); err != nil || after.now().State != podwire.IsFilled || after.now().Digest != is.Digest {
				t.Errorf("%v, %+v", err, after.now())
			}
		})
	}
}

func TestServer_Refused(t *testing.T) {
	content := disk(4)
	sum := base64.StdEncoding.EncodeToString(make([]byte, sha256.Size))
	other := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, sha256.Size))
	for name, is := range map[string]struct {
		status int
		body   io.Reader
		header []string
		change func(*Server)
		left   string
	}{
		"another token":              {401, bytes.NewReader(content), []string{"Authorization", "Bearer other"}, nil, podwire.Empty},
		"no token":                   {401, bytes.NewReader(content), []string{"Authorization", ""}, nil, podwire.Empty},
		"no token in the pod":        {401, bytes.NewReader(content), []string{"Authorization", "Bearer "}, func(s *Server) { s.Token = "" }, ""},
		"another token by the proxy": {401, bytes.NewReader(content), []string{"Authorization", "", "Virtclaim-Token", "other"}, nil, podwire.Empty},
		"no token by the proxy":      {401, bytes.NewReader(content), []string{"Authorization", "", "Virtclaim-Token", ""}, func(s *Server) { s.Token = "" }, ""},
		"a digest of something else": {422, bytes.NewReader(content), []string{"Digest", "sha-256=" + sum}, nil, podwire.Incomplete},
		"a structured digest":        {422, bytes.NewReader(content), []string{"Repr-Digest", "sha-256=:" + sum + ":"}, nil, podwire.Incomplete},
		"a digest that is none":      {400, bytes.NewReader(content), []string{"Digest", "sha-256=x"}, nil, podwire.Empty},
		"not the pod's checksum":     {422, bytes.NewReader(content), nil, func(s *Server) { s.Checksum = "sha256:" + strings.Repeat("0", 64) }, podwire.Incomplete},
		"not the pod's digest":       {422, bytes.NewReader(content), []string{"Digest", "sha-256=" + sum}, func(s *Server) { s.Checksum = fmt.Sprintf("sha512:%x", sha512.Sum512(content)) }, podwire.Incomplete},
		"two digests":                {400, bytes.NewReader(content), []string{"Digest", "sha-256=" + sum, "Repr-Digest", "sha-256=:" + other + ":"}, nil, podwire.Empty},
		"the rest of an image":       {400, bytes.NewReader(content[cluster:]), []string{"Content-Range", fmt.Sprintf("bytes %d-%d/%d", cluster, len(content)-1, len(content))}, nil, podwire.Empty},
		"a form":                     {400, bytes.NewReader(content), []string{"Content-Type", "multipart/form-data; boundary=x"}, nil, podwire.Empty},
		"nothing":                    {422, strings.NewReader(""), nil, nil, podwire.Empty},
		"a web page":                 {422, strings.NewReader("<!DOCTYPE html><title>Log in</title>"), nil, nil, podwire.Empty},
		"no scratch space":           {415, bytes.NewReader(qcow2Of(disk(400), true, false)), nil, func(s *Server) { s.Scratch = "" }, podwire.Incomplete},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, is.change)
			status, said := s.ask(t, "PUT", is.body, is.header...)
			if status != is.status || said.Error == "" || s.filled > 0 {
				t.Errorf("%d, %+v", status, said)
			}
			if is.left == "" {
				return
			}
			if _, now := s.ask(t, "GET", nil); now.State != is.left {
				t.Errorf("%+v", now)
			}
			s.Scratch, s.Checksum = inMemory(t), ""
			if status, said := s.ask(t, "PUT", bytes.NewReader(content)); status != 201 || !bytes.Equal(s.content(t), content) {
				t.Errorf("the second try: %d, %+v", status, said)
			}
		})
	}
	s := serve(t, nil)
	if status, _ := s.ask(t, "DELETE", nil); status != 405 {
		t.Errorf("DELETE: %d", status)
	}
	s.url += "s"
	if status, _ := s.ask(t, "GET", nil); status != 404 {
		t.Errorf("another path: %d", status)
	}
}

// A second writer is refused while the first one goes on, and a connection that is cut leaves a volume that the next try fills.
func TestServer_BusyAndCut(t *testing.T) {
	s := serve(t, nil)
	content := disk(40)
	r, w := io.Pipe()
	first := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.url, r)
		if err == nil {
			req.Header.Set("Authorization", "Bearer secret")
			var resp *http.Response
			if resp, err = http.DefaultClient.Do(req); err == nil {
				err = resp.Body.Close()
			}
		}
		first <- err
	}()
	if _, err := w.Write(content[:len(content)/2]); err != nil {
		t.Fatal(err)
	}
	for { // the client may still have what was written
		if status, is := s.ask(t, "GET", nil); status != 200 || is.State != podwire.Empty && is.State != podwire.Filling {
			t.Fatalf("%d, %+v", status, is)
		} else if is.State == podwire.Filling {
			break
		}
	}
	if status, is := s.ask(t, "PUT", bytes.NewReader(content)); status != 503 || !strings.Contains(is.Error, "in use") {
		t.Errorf("%d, %+v", status, is)
	}
	_ = w.CloseWithError(errors.New("cut"))
	if err := <-first; err == nil {
		t.Error("half an image was taken")
	}
	s.writing.Lock()
	s.writing.Unlock() //nolint:staticcheck // the server sees the cut a little later
	if _, is := s.ask(t, "GET", nil); is.State != podwire.Incomplete || !strings.Contains(is.Error, "connection ended") {
		t.Errorf("%+v", is)
	}
	if status, is := s.ask(t, "PUT", bytes.NewReader(content)); status != 201 || !bytes.Equal(s.content(t), content) {
		t.Errorf("%d, %+v", status, is)
	}
}

func TestServer_HangingClient(t *testing.T) {
	idleTime = 100 * time.Millisecond
	defer func() { idleTime = 2 * time.Minute }()
	s := serve(t, nil)
	content := disk(40)
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	go func() { _, _ = w.Write(content[:len(content)/2]) }()
	if status, is := s.ask(t, "PUT", r); status != 408 || !strings.Contains(is.Error, "nothing came") {
		t.Errorf("%d, %+v", status, is)
	}
	if status, is := s.ask(t, "PUT", bytes.NewReader(content)); status != 201 || !bytes.Equal(s.content(t), content) {
		t.Errorf("%d, %+v", status, is)
	}
}

// curl -C - sends the range of a whole file.
func TestServer_WholeRange(t *testing.T) {
	s := serve(t, nil)
	content := disk(4)
	status, is := s.ask(t, "PUT", bytes.NewReader(content), "Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(content)-1, len(content)), "Authorization", "bearer secret")
	if status != 201 || !bytes.Equal(s.content(t), content) {
		t.Errorf("%d, %+v", status, is)
	}
}

// A client that sends on after a refusal still gets the answer.
// The proxy of Kubernetes' API server lets no Authorization through.
func TestServer_TokenByProxy(t *testing.T) {
	s := serve(t, nil)
	if status, said := s.ask(t, "PUT", bytes.NewReader(disk(2)), "Authorization", "", "Virtclaim-Token", "secret"); status != http.StatusCreated {
		t.Errorf("status %d: %s", status, said.Error)
	}
}

func TestServer_Overwrites(t *testing.T) {
	s := serve(t, func(s *Server) { s.Overwrite = true })
	for _, content := range [][]byte{disk(5), disk(6)} {
		if status, said := s.ask(t, "PUT", bytes.NewReader(content)); status != http.StatusCreated || !bytes.Equal(s.content(t), content) {
			t.Errorf("status %d: %s", status, said.Error)
		}
	}
}

func TestServer_RefusesWhileSending(t *testing.T) {
	s := serve(t, nil)
	for range 5 {
		if status, _ := s.ask(t, "PUT", io.LimitReader(endless{}, 256<<20), "Authorization", "Bearer other"); status != 401 {
			t.Errorf("status %d", status)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
