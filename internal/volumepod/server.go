package volumepod

import (
	"bufio"
	"cmp"
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
)

// Server takes an image by PUT /volume, and shows by GET /volume what is in the volume.
type Server struct {
	Claim
	// Token is what a request must have (Authorization: Bearer), or else a client certificate that was verified; empty if only that is taken.
	Token string
	// Checksum is that of the image as sha256:hex or sha512:hex; empty if any is taken.
	Checksum string
	// Log prints a line.
	Log func(string)
	// Done is called once the volume is filled.
	Done func(Filled)

	writing         sync.Mutex
	bytes, received atomic.Int64
	state           atomic.Pointer[state]
}

// state is what GET /volume shows.
type state struct {
	// State is empty, filling, incomplete or filled.
	State string `json:"state"`
	*Filled
	// Bytes is how much of the disk is written.
	Bytes int64 `json:"bytes"`
	// Received is how much of the image has come, as it is sent.
	Received int64 `json:"received"`
	// Error is why the last try failed.
	Error string `json:"error,omitempty"`
}

// The states of a volume.
const (
	Empty      = "empty"
	Filling    = "filling"
	Incomplete = "incomplete"
	IsFilled   = "filled"
)

// Look reads what is in the claim.
func (s *Server) Look() error {
	now := state{State: Empty}
	v, err := openVolume(s.Path)
	if err != nil {
		return err
	}
	defer func() { _ = v.Close() }()
	begin := make([]byte, sector)
	n, err := v.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch _, half := marked(begin[:n]); {
	case half:
		now.State = Incomplete
	case v.checkUnused() != nil:
		now.State = IsFilled
		if f, ok := recorded(s.Path); ok {
			now.Filled, now.Bytes = &f, f.Capacity
		}
	}
	s.state.Store(&now)
	return nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !s.mayEnter(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		answer(w, http.StatusUnauthorized, state{Error: "the request has neither the pod's token (curl -H \"Authorization: Bearer $TOKEN\") nor a client certificate"})
	case r.URL.Path == "/healthz":
		w.WriteHeader(http.StatusOK)
	case r.URL.Path != "/volume":
		answer(w, http.StatusNotFound, state{Error: "there is only /volume"})
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		answer(w, http.StatusOK, s.now())
	case r.Method == http.MethodPut:
		s.put(w, r)
	default:
		w.Header().Set("Allow", "GET, HEAD, PUT")
		answer(w, http.StatusMethodNotAllowed, state{Error: "use PUT to fill the volume, and GET to look at it"})
	}
}

func (s *Server) mayEnter(r *http.Request) bool {
	if r.URL.Path == "/healthz" || r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return true
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && s.Token != "" && subtle.ConstantTimeCompare([]byte(strings.TrimSpace(token)), []byte(s.Token)) == 1
}

func (s *Server) now() state {
	now := *s.state.Load()
	if now.State == Filling {
		now.Bytes, now.Received = s.bytes.Load(), s.received.Load()
	}
	return now
}

func (s *Server) put(w http.ResponseWriter, r *http.Request) {
	if !s.writing.TryLock() {
		refuse(w, ErrBusy)
		return
	}
	defer s.writing.Unlock()
	if is := s.state.Load(); is.State == IsFilled {
		refuse(w, ErrFilled)
		return
	}
	checksum, err := checksumOf(r.Header, s.Checksum)
	if err != nil {
		refuse(w, err)
		return
	}
	s.state.Store(&state{State: Filling})
	s.bytes.Store(0)
	s.received.Store(0)
	s.Log("an image comes from " + r.RemoteAddr)
	f, err := s.take(w, r, checksum)
	if err != nil {
		s.failed(err)
		refuse(w, err)
		return
	}
	s.state.Store(&state{State: IsFilled, Filled: &f, Bytes: f.Capacity, Received: s.received.Load()})
	answer(w, http.StatusCreated, s.now())
	s.Done(f)
}

// take fills the claim with the body of a request.
func (s *Server) take(w http.ResponseWriter, r *http.Request, checksum string) (Filled, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	idle := time.AfterFunc(idleTime, func() {
		cancel(errIdle)
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	})
	defer idle.Stop()
	body := newHashed(arriving{r.Body, idle, &s.received})
	begin := bufio.NewReaderSize(body, block)
	length := r.ContentLength
	if image.IsPacked(begin) {
		length = -1 // that of the disk is not known
	}
	unpacked, err := image.Body{Reader: begin, Length: r.ContentLength, Checksum: checksum}.Open(ctx)
	if err != nil {
		return Filled{}, err
	}
	defer func() { _ = unpacked.Close() }()
	f, err := s.fill(ctx, unpacked, length, &s.bytes)
	if errors.Is(err, context.Canceled) {
		err = errCut
	}
	if err != nil {
		return Filled{}, err
	}
	f.Digest = body.digest()
	return f, record(s.Path, f)
}

// failed looks what is left of a volume.
func (s *Server) failed(err error) {
	s.Log("the volume was not filled: " + err.Error())
	if looked := s.Look(); looked != nil {
		s.state.Store(&state{State: Incomplete})
	}
	now := *s.state.Load()
	now.Error = err.Error()
	s.state.Store(&now)
}

// checksumOf is the checksum of the image by the headers Repr-Digest or Content-Digest (RFC 9530) or Digest (RFC 3230), or else that of the pod.
func checksumOf(h http.Header, ofPod string) (string, error) {
	for _, name := range []string{"Repr-Digest", "Content-Digest", "Digest"} {
		for _, part := range strings.Split(h.Get(name), ",") {
			algorithm, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			if !strings.EqualFold(algorithm, "sha-256") {
				continue
			}
			raw, err := base64.StdEncoding.DecodeString(strings.Trim(value, ":"))
			if err != nil || len(raw) != sha256.Size {
				return "", fmt.Errorf("%w: the header %s should be like sha-256=<base64>", errBadRequest, name)
			}
			sum := "sha256:" + hex.EncodeToString(raw)
			if strings.HasPrefix(ofPod, "sha256:") && !strings.EqualFold(ofPod, sum) {
				return "", fmt.Errorf("%w: the pod waits for the image with the checksum %s, and this one has %s", errBadRequest, ofPod, sum)
			}
			return cmp.Or(ofPod, sum), nil
		}
	}
	return ofPod, nil
}

var (
	errBadRequest = errors.New("the request can't be taken")
	errIdle       = errors.New("nothing came for a while")
	errCut        = errors.New("the connection ended before the image did")
)

// idleTime is how long a client may send nothing, so that one that hangs does not keep others from the volume; less in tests.
var idleTime = 2 * time.Minute

// statuses are those of errors; what is not among them is the pod's fault.
var statuses = []struct {
	of     error
	status int
}{
	{errBadRequest, http.StatusBadRequest},
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

func refuse(w http.ResponseWriter, err error) {
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
	answer(w, status, state{Error: err.Error()})
}

func answer(w http.ResponseWriter, status int, what state) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	text, _ := json.Marshal(what)
	_, _ = w.Write(append(text, '\n')) // the client may be gone
}

// arriving is a request's body. It counts what is read, and how long that takes.
type arriving struct {
	io.Reader
	idle *time.Timer
	n    *atomic.Int64
}

func (a arriving) Read(p []byte) (int, error) {
	a.idle.Reset(idleTime)
	defer a.idle.Stop()
	n, err := a.Reader.Read(p)
	a.n.Add(int64(n))
	return n, err
}
