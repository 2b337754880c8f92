package volume

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

// upload serves PUT /volume until the context ends, or, if once is set, until the volume is filled.
func upload(ctx context.Context, s *Server, address string, config *tls.Config, once bool) error {
	if err := s.Inspect(); err != nil {
		return err
	}
	ctx, filled := context.WithCancel(ctx)
	defer filled()
	done := s.Done
	s.Done = func(f podwire.Filled) {
		done(f)
		if once {
			filled()
		}
	}
	if is := s.now(); once && is.State == podwire.IsFilled {
		if is.Filled != nil && (s.Checksum == is.Digest || s.Checksum == "" && !s.Overwrite) {
			done(*is.Filled) // by a pod before this
			return nil
		}
		if !s.Overwrite {
			if err := s.checkUnused(); err != nil {
				return err
			}
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	if err := serveHTTPS(ctx, listener, s, config); err != nil {
		return err
	}
	if state := s.now().State; state == podwire.Filling || state == podwire.Incomplete {
		return errIncomplete
	}
	return nil
}

// serveHTTPS answers requests until the context ends, and a little longer those that came before.
func serveHTTPS(ctx context.Context, listener net.Listener, handler http.Handler, config *tls.Config) error {
	server := &http.Server{
		Handler: handler, TLSConfig: config, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		// HTTP/2 is slower for one long body.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		BaseContext:  func(net.Listener) context.Context { return ctx },
	}
	server.SetKeepAlivesEnabled(false) // a proxy would send the image on the connection of another request, and not always notice its end
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// The answer to a request that has filled the volume still goes out.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if server.Shutdown(last) != nil {
		_ = server.Close()
	}
	return nil
}

// endTime is how long a server may go on after the pod was told to end.
const endTime = 800 * time.Millisecond

var errIncomplete = errors.New("the pod ended while the volume was being filled. It is marked as incomplete, and is filled from the " +
	"beginning by the next try")
