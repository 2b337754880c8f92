package volume

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

// output is what a command prints, while it runs.
type output struct {
	sync.Mutex
	bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.Lock()
	defer o.Unlock()
	return o.Buffer.Write(p)
}

func (o *output) text() string {
	o.Lock()
	defer o.Unlock()
	return o.String()
}

// pod runs upload for a new claim until the context ends.
type pod struct {
	folder, url, termination, token string
	out                             output
	code                            chan int
	client                          *http.Client
}

func startPod(ctx context.Context, t *testing.T, args ...string) *pod {
	t.Helper()
	return startPodFor(ctx, t, inMemory(t), args...)
}

func startPodFor(ctx context.Context, t *testing.T, folder string, args ...string) *pod {
	t.Helper()
	p := &pod{folder: folder, code: make(chan int, 1), termination: filepath.Join(inMemory(t), "log")}
	t.Setenv("TERMINATION_LOG", p.termination)
	p.token = filepath.Join(inMemory(t), "token")
	for _, path := range []string{p.termination, p.token} {
		if err := os.WriteFile(path, []byte("secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	p.url = "https://" + address
	p.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	go func() {
		p.code <- Run(ctx, append([]string{"upload", "-volume", p.folder, "-listen", address, "-token-file", p.token}, args...), "", &p.out)
	}()
	for {
		if conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address); err == nil {
			_ = conn.Close()
			return p
		}
		select {
		case code := <-p.code:
			t.Fatalf("exit code %d: %s", code, p.out.text())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (p *pod) put(t *testing.T, body io.Reader) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.url+"/volume", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret")
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

func (p *pod) terminationMessage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.termination)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestUpload_Once(t *testing.T) {
	p := startPod(t.Context(), t, "-once")
	if !regexp.MustCompile(`--pinnedpubkey sha256//[A-Za-z0-9+/]{43}=`).MatchString(p.out.text()) {
		t.Errorf("the certificate is not named: %s", p.out.text())
	}
	if status, err := p.put(t, bytes.NewReader(disk(3))); status != http.StatusCreated || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	if code := <-p.code; code != 0 || !strings.HasPrefix(p.terminationMessage(t), fmt.Sprintf(`{"format":"raw","capacity":%d,"digest":"sha256:`, 3*cluster)) {
		t.Errorf("exit code %d: %s", code, p.terminationMessage(t))
	}
}

// A pod that was filled is done, although others have connections; and so is the one after it.
func TestUpload_OnceBesideOthers(t *testing.T) {
	p := startPod(t.Context(), t, "-once")
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.url+"/volume", r)
		if err == nil {
			_, _ = p.client.Do(req) //nolint:bodyclose // it hangs until the test ends
		}
	}()
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if status, err := p.put(t, bytes.NewReader(disk(3))); status != http.StatusCreated || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	said := p.terminationMessage
	if code := <-p.code; code != 0 || !strings.Contains(said(t), `"digest"`) {
		t.Errorf("exit code %d: %s", code, said(t))
	}
	for args, want := range map[string]int{"-once": 0, "-once -checksum sha256:" + strings.Repeat("0", 64): podwire.ExitFilled} {
		all := append([]string{"upload", "-volume", p.folder, "-token-file", p.token}, strings.Fields(args)...)
		if code := Run(t.Context(), all, "", &p.out); code != want {
			t.Errorf("again, %s: exit code %d: %s", args, code, said(t))
		}
	}
	if err := os.Remove(filepath.Join(p.folder, recordFile)); err != nil {
		t.Fatal(err)
	}
	if code := Run(t.Context(), []string{"upload", "-once", "-volume", p.folder, "-token-file", p.token}, "", &p.out); code != podwire.ExitFilled ||
		!strings.Contains(said(t), diskImage+" has data that is not recognized") {
		t.Errorf("content of others: exit code %d: %s", code, said(t))
	}
}

// With -overwrite, a pod takes another image, but is done if the volume has the wanted one already.
func TestUpload_OnceOverwrites(t *testing.T) {
	p := startPod(t.Context(), t, "-once", "-overwrite")
	first, second := disk(5), disk(3)
	if status, err := p.put(t, bytes.NewReader(first)); status != http.StatusCreated || err != nil {
		t.Fatalf("%d, %v", status, err)
	}
	if code := <-p.code; code != 0 {
		t.Fatalf("exit code %d: %s", code, p.terminationMessage(t))
	}
	wanted := []string{"-once", "-overwrite", "-checksum", fmt.Sprintf("sha256:%x", sha256.Sum256(second))}
	again := startPodFor(t.Context(), t, p.folder, wanted...)
	if status, err := again.put(t, bytes.NewReader(second)); status != http.StatusCreated || err != nil {
		t.Fatalf("%d, %v", status, err)
	}
	if code := <-again.code; code != 0 {
		t.Fatalf("exit code %d: %s", code, again.terminationMessage(t))
	}
	content, err := os.ReadFile(filepath.Join(p.folder, diskImage))
	if err != nil || !bytes.Equal(content, padTo(second, len(first))) {
		t.Errorf("%v, %d bytes", err, len(content))
	}
	args := append([]string{"upload", "-volume", p.folder, "-token-file", p.token}, wanted...)
	if code := Run(t.Context(), args, "", &again.out); code != 0 {
		t.Errorf("the wanted image is there: exit code %d: %s", code, again.out.text())
	}
}

func TestUpload_EndsInTheMiddle(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	p := startPod(ctx, t)
	r, w := io.Pipe()
	answered := make(chan int, 1)
	go func() {
		status, _ := p.put(t, r)
		answered <- status
	}()
	if _, err := w.Write(disk(40)); err != nil {
		t.Fatal(err)
	}
	for marked := false; !marked; {
		content, _ := os.ReadFile(filepath.Join(p.folder, diskImage))
		marked = bytes.HasPrefix(content, []byte("virtclaim: "))
	}
	end()
	if code := <-p.code; code != 1 || !strings.Contains(p.terminationMessage(t), "marked as incomplete") {
		t.Errorf("exit code %d: %s", code, p.terminationMessage(t))
	}
	_ = w.Close()
	if status := <-answered; status == http.StatusCreated {
		t.Error("half an image was taken")
	}
}

func TestRun_Mistakes(t *testing.T) {
	empty := filepath.Join(inMemory(t), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TERMINATION_LOG", filepath.Join(inMemory(t), "missing"))
	for args, want := range map[string]string{
		"":                                 "no command",
		"fetch":                            `no command "fetch"`,
		"upload":                           "-token-file or -client-ca",
		"upload -token-file " + empty:      "no token in " + empty,
		"upload -token-file x -tls-key y":  "go together",
		"upload -client-ca " + empty:       "no certificate in " + empty,
		"upload -token-file x -checksum 0": "names no algorithm",
		"copy":                             "name one container image",
		"erase all":                        `no "all"`,
		"copy -volume " + empty + " a:b:c": "does not name a container image",
	} {
		var out output
		if code := Run(t.Context(), strings.Fields(args), "", &out); code != 1 || !strings.Contains(out.text(), want) || strings.Count(out.text(), "\n") > 1 {
			t.Errorf("%q: exit code %d: %s", args, code, out.text())
		}
	}
	for _, args := range [][]string{{"help"}, {"upload", "-help"}, {"copy", "-h"}, {"erase", "-h"}} {
		var out output
		if code := Run(t.Context(), args, "", &out); code != 0 || out.text() == "" {
			t.Errorf("%q: exit code %d: %s", args, code, out.text())
		}
	}
}
