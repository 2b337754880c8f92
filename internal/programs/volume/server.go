package volume

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

// Server takes an image by PUT /volume, and shows by GET /volume what is in the volume.
type Server struct {
	Claim
	// Token is what a request must have (Authorization: Bearer, or Virtclaim-Token), or else a client certificate that was verified; empty
	// if only that is taken.
	Token string
	// Checksum is that of the image as sha256:hex or sha512:hex; empty if any is taken.
	Checksum string
	// Log prints a line.
	Log func(string)
	// Done is called once the volume is filled.
	Done func(podwire.Filled)

	writing         sync.Mutex
	bytes, received atomic.Int64
	state           atomic.Pointer[podwire.Volume]
}

// inspect returns the state of the claim, with what is in it, if that is recorded.
func (c Claim) inspect() (is podwire.Volume, err error) {
	v, err := openVolume(c.Path)
	if err != nil {
		return is, err
	}
	defer func() { _ = v.Close() }()
	begin := make([]byte, sector)
	n, err := v.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return is, err
	}
	if _, half := marked(begin[:n]); half {
		return podwire.Volume{State: podwire.Incomplete}, nil
	}
	used := v.checkUnused()
	if used == nil {
		return podwire.Volume{State: podwire.Empty}, nil
	}
	is.State = podwire.IsFilled
	if !c.Overwrite {
		is.Error = used.Error()
	}
	if f, ok := readRecord(c.Path); ok {
		is.Filled = &f
	}
	return is, nil
}

// Inspect reads what is in the claim.
func (s *Server) Inspect() error {
	now, err := s.inspect()
	if err == nil {
		s.state.Store(&now)
	}
	return err
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != podwire.HealthPath && !isAuthorized(r, s.Token):
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, r, errNoToken)
	case r.URL.Path == podwire.HealthPath:
		w.WriteHeader(http.StatusOK)
	case r.URL.Path != podwire.Path:
		answer(w, http.StatusNotFound, podwire.Volume{Error: "there is only /volume"})
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		answer(w, http.StatusOK, s.now())
	case r.Method == http.MethodPut:
		s.put(w, r)
	default:
		w.Header().Set("Allow", "GET, HEAD, PUT")
		answer(w, http.StatusMethodNotAllowed, podwire.Volume{Error: "use PUT to fill the volume, and GET to look at it"})
	}
}

// isAuthorized is whether a request has a verified certificate, or the token. The proxy of Kubernetes' API server keeps Authorization for
// itself.
func isAuthorized(r *http.Request, token string) bool {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return true
	}
	is := func(given string) bool {
		return token != "" && subtle.ConstantTimeCompare([]byte(strings.TrimSpace(given)), []byte(token)) == 1
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && is(given) || is(r.Header.Get(podwire.TokenHeader))
}

func (s *Server) now() podwire.Volume {
	now := *s.state.Load()
	if now.State == podwire.Filling {
		now.Bytes, now.Received = s.bytes.Load(), s.received.Load()
	}
	return now
}

func (s *Server) put(w http.ResponseWriter, r *http.Request) {
	f, err := s.fillFromRequest(w, r)
	if err != nil {
		refuse(w, r, err)
		return
	}
	answer(w, http.StatusCreated, s.now())
	s.Done(f)
}

// fillFromRequest fills the claim by a request, unless another one does.
func (s *Server) fillFromRequest(w http.ResponseWriter, r *http.Request) (f podwire.Filled, err error) {
	if !s.writing.TryLock() {
		return f, ErrBusy
	}
	defer s.writing.Unlock()
	if s.state.Load().State == podwire.IsFilled && !s.Overwrite {
		if err := s.checkUnused(); err != nil {
			return f, err
		}
	}
	digest, err := digestOf(r.Header)
	if err == nil {
		err = checkWhole(r.Header)
	}
	if err != nil {
		return f, err
	}
	s.state.Store(&podwire.Volume{State: podwire.Filling})
	s.bytes.Store(0)
	s.received.Store(0)
	s.Log("an image comes from " + r.RemoteAddr)
	if f, err = s.take(w, r, digest); err != nil {
		s.failed(err)
		return f, err
	}
	s.state.Store(&podwire.Volume{State: podwire.IsFilled, Filled: &f, Bytes: f.Capacity, Received: s.received.Load()})
	return f, nil
}

// take fills the claim with the body of a request, which must have this digest unless it is empty.
func (s *Server) take(w http.ResponseWriter, r *http.Request, want string) (f podwire.Filled, err error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	idle := time.AfterFunc(idleTime, func() {
		cancel(errIdle)
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	})
	defer idle.Stop()
	body := newHashed(requestBody{r.Body, idle, &s.received})
	begin := bufio.NewReaderSize(body, block)
	length := r.ContentLength
	if image.IsPacked(begin) {
		length = -1 // that of the disk is not known
	}
	unpacked, err := image.Body{Reader: begin, Length: r.ContentLength, Checksum: s.Checksum, Limit: image.MaxCapacity}.Open(ctx)
	if err != nil {
		return f, err
	}
	defer func() { _ = unpacked.Close() }()
	f, err = s.fill(ctx, unpacked, length, &s.bytes, func() (string, error) {
		got := body.digest()
		if want != "" && got != want {
			return "", fmt.Errorf("%w: its digest is %s, and not %s. It was changed on its way, or is another image", image.ErrUntrusted,
				got, want)
		}
		return got, nil
	})
	if errors.Is(err, context.Canceled) {
		err = errCut
	}
	return f, err
}

// failed looks what is left of a volume.
func (s *Server) failed(err error) {
	s.Log("the volume was not filled: " + err.Error())
	if looked := s.Inspect(); looked != nil {
		s.state.Store(&podwire.Volume{State: podwire.Incomplete})
	}
	now := *s.state.Load()
	now.Error = err.Error()
	s.state.Store(&now)
}

// digestOf is the digest of the image by the headers Repr-Digest or Content-Digest (RFC 9530) or Digest (RFC 3230), as sha256:hex.
func digestOf(h http.Header) (digest string, err error) {
	for _, name := range []string{"Repr-Digest", "Content-Digest", "Digest"} {
		for _, part := range strings.Split(strings.Join(h.Values(name), ","), ",") {
			algorithm, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			if !strings.EqualFold(algorithm, "sha-256") {
				continue
			}
			raw, err := base64.StdEncoding.DecodeString(strings.Trim(value, ":"))
			if err != nil || len(raw) != sha256.Size {
				return "", fmt.Errorf("%w: the header %s should be like sha-256=<base64>", errBadRequest, name)
			}
			is := "sha256:" + hex.EncodeToString(raw)
			if digest != "" && digest != is {
				return "", fmt.Errorf("%w: its headers have the digests %s and %s", errBadRequest, digest, is)
			}
			digest = is
		}
	}
	return digest, nil
}

// checkWhole refuses parts of an image, and forms: they would be taken for the image.
func checkWhole(h http.Header) error {
	if of := h.Get("Content-Range"); of != "" {
		var first, last, all int64
		if n, _ := fmt.Sscanf(of, "bytes %d-%d/%d", &first, &last, &all); n != 3 || first != 0 || last != all-1 {
			return fmt.Errorf("%w: it has a part of the image (Content-Range: %q). Send the image from its beginning", errBadRequest, of)
		}
	}
	if strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "multipart/") {
		return fmt.Errorf("%w: it has a form. Send the image as it is, with curl --upload-file", errBadRequest)
	}
	return nil
}

var (
	errBadRequest = errors.New("the request can't be taken")
	errNoToken    = errors.New("the request has neither the pod's token (curl -H \"Authorization: Bearer $TOKEN\") nor a client " +
		"certificate")
	errIdle = errors.New("nothing came for a while")
	errCut  = errors.New("the connection ended before the image did")
)

// idleTime is how long a client may send nothing, so that one that hangs does not keep others from the volume; less in tests.
var idleTime = 2 * time.Minute

// statuses are those of errors; what is not among them is the pod's fault.
var statuses = []struct {
	of     error
	status int
}{
	{errBadRequest, http.StatusBadRequest},
	{errNoToken, http.StatusUnauthorized},
	{ErrFilled, http.StatusConflict},
	{ErrBusy, http.StatusServiceUnavailable},
	{ErrTooLarge, http.StatusRequestEntityTooLarge},
	{ErrNeedsScratch, http.StatusUnsupportedMediaType},
	{image.ErrUntrusted, http.StatusUnprocessableEntity},
	{unix.ENOSPC, http.StatusInsufficientStorage},
	{errIdle, http.StatusRequestTimeout},
	{errCut, http.StatusBadRequest},
	{io.ErrUnexpectedEOF, http.StatusBadRequest},
}

func refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	for _, s := range statuses {
		if errors.Is(err, s.of) {
			status = s.status
			break
		}
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	answer(w, status, podwire.Volume{Error: err.Error()})
	// A client that is still sending has to see the answer before its connection is reset.
	connection := http.NewResponseController(w)
	if connection.Flush() == nil && connection.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

// lingerTime is how long the rest of a refused image is still read.
const lingerTime = time.Second

func answer(w http.ResponseWriter, status int, what podwire.Volume) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	text, _ := json.Marshal(what)
	_, _ = w.Write(append(text, '\n')) // the client may be gone
}

// requestBody is a request's body. It counts what is read, and how long that takes.
type requestBody struct {
	io.Reader
	idle *time.Timer
	n    *atomic.Int64
}

func (a requestBody) Read(p []byte) (int, error) {
	a.idle.Reset(idleTime)
	defer a.idle.Stop()
	n, err := a.Reader.Read(p)
	a.n.Add(int64(n))
	return n, err
}
