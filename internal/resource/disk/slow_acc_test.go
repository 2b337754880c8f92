//go:build acc

package disk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// gate is a server that sends half of a smallImage, and the rest when it is open.
type gate struct {
	address string
	half    chan struct{}
	open    func()

	opened   chan struct{}
	announce func()
}

func newGate(t *testing.T, files http.Handler) *gate {
	t.Helper()
	g := &gate{half: make(chan struct{}), opened: make(chan struct{})}
	g.announce = sync.OnceFunc(func() { close(g.half) })
	g.open = sync.OnceFunc(func() { close(g.opened) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		files.ServeHTTP(&gated{ResponseWriter: w, gate: g, ctx: r.Context(), left: 512 << 10}, r)
	}))
	g.address = server.Listener.Addr().String()
	t.Cleanup(func() { g.open(); server.Close() })
	return g
}

// awaitHalf waits until half of an image has been sent.
func (g *gate) awaitHalf(t *testing.T) {
	t.Helper()
	select {
	case <-g.half:
	case <-time.After(time.Minute):
		t.Fatal("nobody wants the image")
	}
}

// gated is a response that stops in the middle.
type gated struct {
	http.ResponseWriter
	gate *gate
	ctx  context.Context //nolint:containedctx // it is the request's
	left int
}

func (w *gated) Write(p []byte) (int, error) {
	if len(p) <= w.left {
		w.left -= len(p)
		return w.ResponseWriter.Write(p)
	}
	n, err := w.ResponseWriter.Write(p[:w.left])
	if err = errors.Join(err, http.NewResponseController(w.ResponseWriter).Flush()); err != nil {
		return n, err
	}
	w.gate.announce()
	select {
	case <-w.gate.opened:
	case <-w.ctx.Done():
		return n, context.Cause(w.ctx)
	}
	w.left = len(smallImage()) * 2
	more, err := w.ResponseWriter.Write(p[n:])
	return n + more, err
}

// Unwrap is called by http.ResponseController.
func (w *gated) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// gatedURL is a disk of a URL whose download stops in the middle.
func gatedURL(t *testing.T) (g *gate, config string) {
	t.Helper()
	g = newGate(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "image", time.Time{}, bytes.NewReader(smallImage()))
	}))
	return g, disk("web", fmt.Sprintf("source = { url = { url = %q } }", "http://"+g.address+"/image"))
}

// gatedImage is a disk of a container image whose download stops in the middle.
func gatedImage(t *testing.T, l *lab.Lab) (g *gate, config string) {
	t.Helper()
	registry, image := pushed(t, l, "disks/gated", smallImage())
	g = newGate(t, httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: registry.Address}))
	return g, disk("pulled", containerImage(strings.Replace(image.Reference, registry.Address, g.address, 1)))
}

func TestAccDisk_InterruptEndsUpload(t *testing.T) {
	l := acctest.Lab(t)
	_, config := gatedURL(t)
	cli := acctest.NewCLI(t).With("TF_LOG_PROVIDER=INFO")
	cli.Write("main.tf", acctest.Provider(l, "disks")+config)
	cmd, output := cli.Start("apply", "-auto-approve", "-no-color")
	acctest.Eventually(t, "the log tells twice how far it is", func() error {
		if n := strings.Count(output(), "Filling the disk"); n < 2 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	acctest.Contains(t, output(), "bytes=524288")
	began := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the apply succeeded")
	}
	if waited := time.Since(began); waited > 10*time.Second {
		t.Errorf("it went on for %s", waited)
	}
	if !message("Disk web: host host-a", "after 524288 bytes").MatchString(output()) {
		t.Errorf("the error does not say how far it was:\n%s", output())
	}
	nothingIn(t, l, "ssd")
}

// QEMU survives a crash of libvirtd, and so does the journal's domain, although its creator is dead. If the failed apply could not clean
// up, the next one takes some time to detect that.
func TestAccDisk_LibvirtdCrashDuringUpload(t *testing.T) {
	for name, down := range map[string]bool{"back at once": false, "back after the apply": true} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			daemon := l.Hosts["host-a"]
			web, fromWeb := gatedURL(t)
			registry, fromRegistry := gatedImage(t, l)
			cli := acctest.NewCLI(t)
			cli.Write("main.tf", acctest.Provider(l, "disks")+fromWeb+fromRegistry)
			cmd, output := cli.Start("apply", "-auto-approve", "-no-color")
			web.awaitHalf(t)
			registry.awaitHalf(t)
			acctest.Eventually(t, "the disk and the shared image are being made", func() error {
				if bases, disks := inPool(t, l); len(bases) != 1 || len(disks) != 1 {
					return fmt.Errorf("the pool has %v and %v", bases, disks)
				}
				return nil
			})
			if err := daemon.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
			start := func() {
				if err := daemon.Start(context.WithoutCancel(t.Context())); err != nil {
					t.Fatal(err)
				}
			}
			if !down {
				start()
			}
			web.open()
			registry.open()
			if err := cmd.Wait(); err == nil {
				t.Errorf("the apply succeeded:\n%s", output())
			}
			if down {
				start()
			}
			cli.Must("apply", "-auto-approve", "-no-color")
			sameImage(t, file(l, "web"), smallImage())
			sameImage(t, file(l, "pulled"), smallImage())
			acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
			cli.Must("destroy", "-auto-approve", "-no-color")
		})
	}
}
