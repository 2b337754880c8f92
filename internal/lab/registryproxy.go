package lab

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"time"
)

// The kinds of things that a registry is asked for.
const (
	kindManifests = "manifests"
	kindBlobs     = "blobs"
)

// Requests is how many requests of a method, such as GET, there were since the start for "manifests" or "blobs". A push
// of the lab's own does not count, nor does a request that was refused for want of a password.
func (r *Registry) Requests(method, kind string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[registryRequest{method, kind}]
}

// Pulls is how many GETs of blobs there were since the start. An image has one blob for each layer and a small one, its
// configuration.
func (r *Registry) Pulls() int { return r.Requests(http.MethodGet, kindBlobs) }

// Manifests is how many GETs of manifests and indexes there were since the start.
func (r *Registry) Manifests() int { return r.Requests(http.MethodGet, kindManifests) }

// Cut has the connections of the next GETs of blobs break after so many bytes of the body: one offset each, in order. A
// blob with no more bytes than that leaves the offset to the next one, so an offset of more than some hundred bytes
// spares configurations. Another call replaces what is left of the offsets.
func (r *Registry) Cut(offsets ...int64) { r.cuts.set(offsets) }

// proxy passes requests on to the registry, counts them and cuts connections.
func (r *Registry) proxy() http.Handler {
	to := &url.URL{Scheme: "http", Host: r.server}
	proxy := &httputil.ReverseProxy{
		Rewrite:  func(p *httputil.ProxyRequest) { p.SetURL(to) },
		ErrorLog: log.New(io.Discard, "", 0), // it tells of clients that hang up
	}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		// /v2/<repository>/blobs/<digest>
		kind := path.Base(path.Dir(request.URL.Path))
		r.mu.Lock()
		r.seen[registryRequest{request.Method, kind}]++
		r.mu.Unlock()
		if request.Method == http.MethodGet && kind == kindBlobs {
			r.cuts.serve(proxy, w, request)
			return
		}
		proxy.ServeHTTP(w, request)
	})
}

// asksWho lets those through who know the password.
func (r *Registry) asksWho(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		username, password, _ := request.BasicAuth()
		if username != r.Username || password != r.Password {
			w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, request)
	})
}

// listen starts a server, and gives its host:port.
func (r *Registry) listen(ctx context.Context, handler http.Handler) (address string, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	r.proxies = append(r.proxies, server)
	go func() { _ = server.Serve(listener) }() // it ends when the server is closed
	return listener.Addr().String(), nil
}
