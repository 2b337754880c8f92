package lab

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
)

// errCut is the error of a handler's write to a connection that is to be cut.
var errCut = errors.New("the lab cuts this connection")

// cuts are the offsets, in bytes of the body, at which the connections of the next responses are cut: one each, in order.
type cuts struct {
	mu      sync.Mutex
	offsets []int64
}

// set replaces the remaining offsets.
func (c *cuts) set(offsets []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offsets = offsets
}

// next takes an offset for a response of that length in bytes; -1 means that it is not to be cut. A response that ends before the offset
// leaves it to the next one, so that small additional requests use none up.
func (c *cuts) next(length int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.offsets) == 0 || length <= c.offsets[0] {
		return -1
	}
	offset := c.offsets[0]
	c.offsets = c.offsets[1:]
	return offset
}

// serve has a handler serve a request, and cuts the connection in the middle of the response if there is an offset for it. Only successful
// responses are cut.
func (c *cuts) serve(handler http.Handler, w http.ResponseWriter, r *http.Request) {
	answer := &cutAnswer{ResponseWriter: w, cuts: c, left: -1}
	handler.ServeHTTP(answer, r)
	if answer.left == 0 {
		panic(http.ErrAbortHandler) // this makes net/http close the connection
	}
}

// cutAnswer is a response that may be cut.
type cutAnswer struct {
	http.ResponseWriter

	cuts *cuts
	// left is the number of bytes of the body that may still pass; -1 means all.
	left int64
	told bool
}

// WriteHeader implements http.ResponseWriter. The length is known here, because all responses that are cut have one.
func (a *cutAnswer) WriteHeader(status int) {
	length, err := strconv.ParseInt(a.Header().Get("Content-Length"), 10, 64)
	if err == nil && !a.told && (status == http.StatusOK || status == http.StatusPartialContent) {
		a.left = a.cuts.next(length)
	}
	a.told = true
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. The bytes that may pass are flushed before the connection is cut, so that the client gets all of
// them.
func (a *cutAnswer) Write(p []byte) (int, error) {
	if !a.told {
		a.WriteHeader(http.StatusOK)
	}
	if a.left < 0 {
		return a.ResponseWriter.Write(p)
	}
	n, err := a.ResponseWriter.Write(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	if err == nil && a.left == 0 {
		err = errors.Join(errCut, http.NewResponseController(a.ResponseWriter).Flush())
	}
	return n, err
}
