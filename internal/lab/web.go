package lab

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Web is a web server with support for range requests. It runs in this process, because there is nothing that a sandbox would have to end.
type Web struct {
	// HTTP, HTTPS and Untrusted are the host:port of three servers of the same files. The lab's hosts trust the certificate of HTTPS; they
	// don't trust that of Untrusted.
	HTTP, HTTPS, Untrusted string
	// CA is the path of the certificate of the authority that has signed the one of HTTPS.
	CA string

	dir     string
	servers []*http.Server

	mu     sync.Mutex
	last   int
	faults map[string]*webFault // by WebFile.Name
}

// WebFile is a file that Web serves.
type WebFile struct {
	// Name is the path in the file's URLs, without the first slash.
	Name string
	// Path is the file.
	Path string
	// Size is in bytes.
	Size int64
}

// URL is the URL of the file on one of the servers, for QEMU's tools.
func (f WebFile) URL(scheme, server string) string { return scheme + "://" + server + "/" + f.Name }

// Web returns the lab's web server, which the first call starts.
func (l *Lab) Web(ctx context.Context) (*Web, error) {
	return l.web.get(ctx, func(ctx context.Context) (*Web, error) {
		dir, err := l.serverFolder("web")
		if err != nil {
			return nil, err
		}
		w := newWeb(dir)
		return w, w.start(ctx, l.authority)
	})
}

func newWeb(dir string) *Web {
	return &Web{dir: dir, CA: filepath.Join(dir, "ca.pem"), faults: map[string]*webFault{}}
}

func (w *Web) start(ctx context.Context, known *authority) error {
	if err := os.WriteFile(w.CA, known.pem(), 0o600); err != nil {
		return err
	}
	unknown, err := newAuthority("nobody knows it")
	if err != nil {
		return err
	}
	if w.HTTP, err = w.serve(ctx, nil); err != nil {
		return err
	}
	if w.HTTPS, err = w.serve(ctx, known); err != nil {
		return err
	}
	w.Untrusted, err = w.serve(ctx, unknown)
	return err
}

// serve starts a server, for HTTPS if there is a signer for its certificate.
func (w *Web) serve(ctx context.Context, signer *authority) (address string, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address = listener.Addr().String()
	if signer != nil {
		certificate, err := signer.forServer()
		if err != nil {
			return "", errors.Join(err, listener.Close())
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	}
	server := &http.Server{
		Handler:           w.faulty(http.FileServer(http.Dir(filepath.Join(w.dir, "files")))),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // it reports clients that do not trust it
	}
	w.servers = append(w.servers, server)
	go func() { _ = server.Serve(listener) }() // it ends when the server is closed
	return address, nil
}

// AddFile creates a sparse file that starts with content. Its URL ends with the name.
func (w *Web) AddFile(name string, size int64, content []byte) (WebFile, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	file := WebFile{Name: path.Join(strconv.Itoa(w.last), name), Size: size}
	file.Path = filepath.Join(w.dir, "files", filepath.FromSlash(file.Name))
	if err := os.MkdirAll(filepath.Dir(file.Path), 0o700); err != nil {
		return WebFile{}, err
	}
	if err := makeImage(file.Path, size, content); err != nil {
		return WebFile{}, fmt.Errorf("make a file of the web server: %w", err)
	}
	return file, nil
}

// AddContent creates a file with exactly this content. Its URL ends with the name.
func (w *Web) AddContent(name string, content []byte) (WebFile, error) {
	return w.AddFile(name, int64(len(content)), content)
}

// RemoveFile removes a file.
func (w *Web) RemoveFile(file WebFile) error { return os.Remove(file.Path) }

func (w *Web) close(context.Context) error {
	if w == nil {
		return nil
	}
	var all []error
	for _, server := range w.servers {
		all = append(all, server.Close())
	}
	return errors.Join(all...)
}
