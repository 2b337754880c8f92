package lab

import (
	"net/http"
	"strings"
)

// webFault has the faults of one of Web's files, and the number of its requests.
type webFault struct {
	cuts          cuts
	gets          int
	withoutRanges bool
}

// Cut breaks the connections of the next GETs of a file after that many bytes of the body: one offset each, in order. A GET whose response
// has no more bytes than its offset, because it requests a small range, leaves the offset to the next one. Another call replaces the
// remaining offsets.
func (w *Web) Cut(file WebFile, offsets ...int64) { w.fault(file.Name).cuts.set(offsets) }

// WithoutRanges has the servers ignore the ranges in requests for a file: they send all of it, with status 200.
func (w *Web) WithoutRanges(file WebFile) {
	f := w.fault(file.Name)
	w.mu.Lock()
	defer w.mu.Unlock()
	f.withoutRanges = true
}

// Gets is the number of GETs of a file, on all servers, including failed ones. A client that requests ranges sends one for each.
func (w *Web) Gets(file WebFile) int {
	f := w.fault(file.Name)
	w.mu.Lock()
	defer w.mu.Unlock()
	return f.gets
}

// fault returns a file's faults, and creates them if missing.
func (w *Web) fault(name string) *webFault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faults[name] == nil {
		w.faults[name] = &webFault{}
	}
	return w.faults[name]
}

// faulty has files serve requests, with their faults.
func (w *Web) faulty(files http.Handler) http.Handler {
	return http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		f := w.fault(strings.TrimPrefix(r.URL.Path, "/"))
		w.mu.Lock()
		if r.Method == http.MethodGet {
			f.gets++
		}
		whole := f.withoutRanges
		w.mu.Unlock()
		if whole {
			r.Header.Del("Range")
			answer = noRanges{answer}
		}
		if r.Method != http.MethodGet {
			files.ServeHTTP(answer, r)
			return
		}
		f.cuts.serve(files, answer, r)
	})
}

// noRanges is a response that does not announce ranges.
type noRanges struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a noRanges) WriteHeader(status int) {
	a.Header().Del("Accept-Ranges")
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is called by http.ResponseController.
func (a noRanges) Unwrap() http.ResponseWriter { return a.ResponseWriter }
