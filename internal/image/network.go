package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// network is the transport of all downloads.
var network http.RoundTripper = watchful{newTransport()}

func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = 1 << 20
	// Checksums are of the file as it is served.
	t.DisableCompression = true
	return t
}

// maxRedirects is the maximal number of redirects of a request.
const maxRedirects = 10

func newClient(t http.RoundTripper) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: checkRedirect}
}

// checkRedirect refuses a redirect from https to http, and removes the Referer, because the previous address may be signed.
func checkRedirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer")
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("the server redirects more than %d times", maxRedirects)
	case req.URL.Scheme != "http" && req.URL.Scheme != "https":
		return fmt.Errorf("the server redirects to the scheme %q, and only http and https are read", req.URL.Scheme)
	case req.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https":
		return fmt.Errorf("the server redirects from https to http, to %s, where an attacker on the network could change the "+
			"image", req.URL.Host)
	}
	return nil
}

// stallAfter is how long a server may be silent while a response is expected. The total time is not limited, because it depends on the
// size.
var stallAfter = time.Minute

var errStalled = errors.New("the server stopped sending")

// watchful ends requests without progress.
type watchful struct{ inner http.RoundTripper }

func (w watchful) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	body := &watchedBody{ctx: ctx, cancel: cancel, timer: time.AfterFunc(stallAfter, func() { cancel(errStalled) })}
	resp, err := w.inner.RoundTrip(req.WithContext(ctx))
	body.timer.Stop()
	if err != nil {
		err = body.explain(err)
		cancel(nil)
		return nil, err
	}
	body.ReadCloser, resp.Body, resp.Request = resp.Body, body, req
	return resp, nil
}

// watchedBody runs its timer only during a Read, not while the caller processes the data.
type watchedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.timer.Reset(stallAfter)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.explain(err)
	}
	return n, err
}

func (b *watchedBody) explain(err error) error {
	if errors.Is(context.Cause(b.ctx), errStalled) {
		return errStalled
	}
	return err
}

func (b *watchedBody) Close() error {
	b.timer.Stop()
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
