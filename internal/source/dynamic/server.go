package dynamic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

const bearer = "Bearer "

// Server makes and removes one volume, by version 1 of the protocol.
type Server struct {
	// Name is the server's in errors.
	Name string
	// Key names the volume: requests with the same key are about the same volume.
	Key string
	// Namespace is that of the claims and Secrets that an answer names; empty if it must not name any.
	Namespace string
	// Header has the token.
	Header http.Header
	// Call sends a request without a body.
	Call func(ctx context.Context, method string, query url.Values, header http.Header) (*http.Response, error)
}

// ErrRefused is that of a request which the server has refused.
var ErrRefused = errors.New("refused the request")

// ErrLost is that of a volume that is no longer there.
var ErrLost = errors.New("the volume is no longer there")

// Make makes the volume, or finds it again. isNew is whether this request has made it, also with an error. An error says whether it may
// have made it.
func (s Server) Make(ctx context.Context, parameters map[string]string) (a Answer, isNew bool, err error) {
	status, body, err := s.ask(ctx, http.MethodPut, parameters, http.Header{})
	if err != nil {
		return a, false, fmt.Errorf("%w. Whether the volume was made is not known: the next apply finds it if it was", err)
	}
	isNew = status == http.StatusCreated
	a, err = s.answer(status, body)
	return a, isNew, err
}

// Find asks for a volume that was made before, which grows if its size does, and makes and removes none. It is ErrLost if there is none.
// Status 201 (isNew) is that of a server which does not know If-Match: its volume is the known one if the answer has the known fingerprint,
// and otherwise left alone.
func (s Server) Find(ctx context.Context, parameters map[string]string, known string) (a Answer, isNew bool, err error) {
	status, body, err := s.ask(ctx, http.MethodPut, parameters, http.Header{"If-Match": {"*"}})
	if err != nil {
		return a, false, err
	}
	if status == http.StatusPreconditionFailed {
		return a, false, ErrLost
	}
	isNew = status == http.StatusCreated
	if a, err = s.answer(status, body); err == nil && isNew && a.Fingerprint() != known {
		err = fmt.Errorf("%w: asked to make none (If-Match), it says that it has made another one (201), which is left", ErrLost)
	}
	return a, isNew, err
}

func (s Server) answer(status int, body []byte) (a Answer, err error) {
	if status != http.StatusOK && status != http.StatusCreated {
		return a, s.refused(status, body)
	}
	if a, err = Parse(body, s.Namespace); err != nil {
		err = fmt.Errorf("the answer of %s can't be used: %s. It begins with %q", s.Name, s.clean(err.Error()), s.begin(body))
	}
	return a, err
}

// Remove removes the volume and its data. A volume that is gone is no error, but only the server says so: 404 is also what a wrong address
// answers.
func (s Server) Remove(ctx context.Context) error {
	status, body, err := s.ask(ctx, http.MethodDelete, nil, http.Header{})
	if err != nil {
		return err
	}
	switch status {
	case http.StatusOK, http.StatusNoContent, http.StatusGone:
		return nil
	}
	return s.refused(status, body)
}

func (s Server) refused(status int, body []byte) error {
	err := fmt.Errorf("%s %w (%d %s)", s.Name, ErrRefused, status, http.StatusText(status))
	if said := s.begin(body); said != "" {
		err = fmt.Errorf("%w: %q", err, said)
	}
	return err
}

// begin is the begin of a server's text.
func (s Server) begin(text []byte) string {
	return fmt.Sprintf("%.1024s", strings.TrimSpace(s.clean(string(text))))
}

// clean takes the token out of a server's text, which may have repeated it.
func (s Server) clean(text string) string {
	for _, values := range s.Header {
		for _, v := range values {
			text = strings.ReplaceAll(text, strings.TrimPrefix(v, bearer), "***")
		}
	}
	return text
}

const (
	// failures is how often a request may fail to reach the server; less in tests.
	failures = 6
	// pause is how long to wait before the next request, if the server does not say.
	pause = 5 * time.Second
)

// ask sends a request until it is answered with more than "not yet". Each may be repeated, because the key makes them idempotent.
func (s Server) ask(ctx context.Context, method string, parameters map[string]string,
	header http.Header,
) (status int, body []byte, err error) {
	query := url.Values{}
	for name, value := range parameters {
		query.Set(name, value)
	}
	for failed := 0; ; {
		var again time.Duration
		status, body, again, err = s.askOnce(ctx, method, query, header.Clone())
		var lost *unreachableError
		switch {
		case ctx.Err() != nil:
			return status, body, fmt.Errorf("%s has not answered %s %s in time: %w", s.Name, method, podwire.Path,
				errors.Join(ctx.Err(), err))
		case errors.As(err, &lost):
			if failed++; failed == failures {
				return status, body, err
			}
			again = time.Duration(failed) * time.Second
		case err != nil || again == 0:
			return status, body, err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
}

// unreachableError is that of a request to which the server has not answered.
type unreachableError struct{ error }

func (e *unreachableError) Unwrap() error { return e.error }

func (s Server) askOnce(ctx context.Context, method string, query url.Values,
	header http.Header,
) (status int, body []byte, again time.Duration, err error) {
	maps.Copy(header, s.Header)
	header.Set("Accept", "application/yaml")
	header.Set(podwire.KeyHeader, s.Key)
	header.Set(podwire.ProtocolHeader, podwire.Protocol)
	resp, err := s.Call(ctx, method, query, header)
	if err != nil {
		return 0, nil, 0, &unreachableError{fmt.Errorf("asking %s: %w", s.Name, err)}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, 0, &unreachableError{fmt.Errorf("reading the answer of %s: %w", s.Name, err)}
	case len(body) > MaxAnswer:
		return 0, nil, 0, fmt.Errorf("the answer of %s has more than %d KiB. It begins with %q", s.Name, MaxAnswer>>10, s.begin(body))
	}
	if said := apiError(resp.StatusCode, body); said != "" {
		err = fmt.Errorf("asking %s: the API server has answered with %d: %q", s.Name, resp.StatusCode, s.clean(said))
		if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
			err = &unreachableError{err}
		}
		return 0, nil, 0, err
	}
	switch resp.StatusCode {
	case http.StatusAccepted, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		again = retryAfter(resp.Header)
	}
	return resp.StatusCode, body, again, nil
}

// apiError is the error of an API server that does not reach the pod; empty for other answers. A pod may feign it.
func apiError(status int, body []byte) string {
	var s metav1.Status
	if err := json.Unmarshal(body, &s); status >= 400 && err == nil && s.Kind == "Status" {
		return cmp.Or(s.Message, "no message")
	}
	return ""
}

// retryAfter is between 200 ms and a minute.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 31)
	if err != nil {
		return pause
	}
	return min(max(time.Duration(seconds)*time.Second, 200*time.Millisecond), time.Minute)
}
