package lab

import (
	"net/http"
	"strings"
)

// webFault is what goes wrong with one of the files of Web, and how often it was asked for.
type webFault struct {
	cuts          cuts
	gets          int
	withoutRanges bool
}

// Cut has the connections of the next GETs of a file break after so many bytes of the body: one offset each, in order.
// A GET that is answered with no more bytes than its offset, for it asks for a small range, leaves the offset to the
// next one. Another call replaces what is left of the offsets.
func (w *Web) Cut(file WebFile, offsets ...int64) { w.fault(file.Name).cuts.set(offsets) }

// WithoutRanges has the servers ignore that a client asks for a range of a file: they send all of it, with status 200.
func (w *Web) WithoutRanges(file WebFile) {
	f := w.fault(file.Name)
	w.mu.Lock()
	defer w.mu.Unlock()
	f.withoutRanges = true
}

// Gets is how often a file was asked for with GET, on all servers and in vain, too. A client that asks for ranges does
// it once for each.
func (w *Web) Gets(file WebFile) int {
	f := w.fault(file.Name)
	w.mu.Lock()
	defer w.mu.Unlock()
	return f.gets
}

// fault gives a file's, and makes it.
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

// noRanges is an answer that does not tell of ranges.
type noRanges struct{ http.ResponseWriter }

// WriteHeader is net/http's.
func (a noRanges) WriteHeader(status int) {
	a.Header().Del("Accept-Ranges")
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is http.ResponseController's.
func (a noRanges) Unwrap() http.ResponseWriter { return a.ResponseWriter }
