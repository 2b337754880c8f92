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

// The kinds of objects that a registry serves.
const (
	kindManifests = "manifests"
	kindBlobs     = "blobs"
)

// Requests is the number of requests with a method, such as GET, for "manifests" or "blobs" since the start. The lab's own pushes are not
// counted, nor are requests that were refused without a password.
func (r *Registry) Requests(method, kind string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[registryRequest{method, kind}]
}

// Pulls is the number of GETs of blobs since the start. An image has one blob for each layer and a small one, its configuration.
func (r *Registry) Pulls() int { return r.Requests(http.MethodGet, kindBlobs) }

// Manifests is the number of GETs of manifests and indexes since the start.
func (r *Registry) Manifests() int { return r.Requests(http.MethodGet, kindManifests) }

// Cut breaks the connections of the next GETs of blobs after that many bytes of the body: one offset each, in order. A blob with no more
// bytes than that leaves the offset to the next one, so an offset of more than some hundred bytes does not affect configurations. Another
// call replaces the remaining offsets.
func (r *Registry) Cut(offsets ...int64) { r.cuts.set(offsets) }

// proxy forwards requests to the registry, counts them and cuts connections.
func (r *Registry) proxy() http.Handler {
	to := &url.URL{Scheme: "http", Host: r.server}
	proxy := &httputil.ReverseProxy{
		Rewrite:  func(p *httputil.ProxyRequest) { p.SetURL(to) },
		ErrorLog: log.New(io.Discard, "", 0), // it reports clients that close the connection
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

// asksWho requires the username and the password.
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

// listen starts a server, and returns its host:port.
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
