package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// LocalFile is an image on the machine where Terraform runs.
type LocalFile struct {
	Path string
	// Digest is the expected hash of the file, packed or not, as sha256:hex; empty if the plan had none.
	Digest string
	// Limit is the maximal number of bytes of the unpacked image; 0 means MaxUnpacked.
	Limit int64
}

// Check refuses a file that can't be opened; fs.ErrNotExist if there is none.
func (f LocalFile) Check() error {
	file, _, err := f.open()
	if err != nil {
		return err
	}
	return file.Close()
}

// Hash returns the digest of the file, packed or not, as sha256:hex. It is cached for all disks of this process until the file changes.
func (f LocalFile) Hash(ctx context.Context) (digest string, err error) {
	file, info, err := f.open()
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	known, err := memoryOf(ctx, f.Path)
	if err != nil {
		return "", err
	}
	defer known.release()
	if known.info != nil && isUnchanged(known.info, info) {
		return known.digest, nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, contextReader{ctx, file}); err != nil {
		return "", fmt.Errorf("reading %s: %w", f.Path, err)
	}
	after, err := file.Stat()
	if err != nil {
		return "", err
	}
	if !isUnchanged(info, after) {
		return "", fmt.Errorf("%s changed while it was read. Wait until whatever writes it is done", f.Path)
	}
	known.info, known.digest = info, "sha256:"+hex.EncodeToString(hash.Sum(nil))
	return known.digest, nil
}

// Open returns a reader of the unpacked image. It returns io.EOF only after the whole file was read and the digest verified; an error is
// ErrUntrusted if the content is the cause. A blocked Read ends with ctx.
func (f LocalFile) Open(ctx context.Context) (io.ReadCloser, error) { return f.read(ctx, unpack) }

// OpenFile is Open for a file that is no image: it is not unpacked.
func (f LocalFile) OpenFile(ctx context.Context) (io.ReadCloser, error) { return f.read(ctx, asIs) }

func (f LocalFile) read(ctx context.Context, write func(w io.Writer, file io.Reader, limit int64) error) (io.ReadCloser, error) {
	want, err := parseChecksum(f.Digest)
	if err != nil {
		return nil, err
	}
	file, info, err := f.open()
	if err != nil {
		return nil, err
	}
	changed := func(checksum) error {
		return fmt.Errorf("%w: it changed since it was planned. Plan again", ErrUntrusted)
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &meter{}
	return stream(ctx, cancel, m, func(w io.Writer) error {
		defer func() { _ = file.Close() }()
		return f.explain(write(w, verify(contextReader{ctx, m.of(file, info.Size())}, want, -1, changed), f.Limit))
	}), nil
}

// explain names the file, once.
func (f LocalFile) explain(err error) error {
	if err == nil || errors.As(err, &ofFile{}) {
		return err
	}
	return ofFile{f.Path, err}
}

type ofFile struct {
	path string
	error
}

func (e ofFile) Error() string { return e.path + ": " + e.error.Error() }

func (e ofFile) Unwrap() error { return e.error }

// missing is fs.ErrNotExist for a file.
type missing struct{ path string }

func (m missing) Error() string {
	text := fmt.Sprintf("there is no file %q on the computer that runs Terraform", m.path)
	if at, err := filepath.Abs(m.path); err == nil && at != m.path {
		text += fmt.Sprintf(" (it was looked for at %q)", at)
	}
	return text
}

func (m missing) Unwrap() error { return fs.ErrNotExist }

// open checks the type of the file first: opening a pipe would wait for a writer.
func (f LocalFile) open() (*os.File, fs.FileInfo, error) {
	seen, err := os.Stat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		err = missing{f.Path}
	}
	if err != nil {
		return nil, nil, err
	}
	if err := checkKind(f.Path, seen.Mode()); err != nil {
		return nil, nil, err
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !os.SameFile(seen, info) {
		err = fmt.Errorf("%s was replaced while it was opened. Wait until whatever writes it is done", f.Path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

func checkKind(path string, mode fs.FileMode) error {
	var kind string
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	default:
		kind = "no plain file"
	}
	return fmt.Errorf("%s is %s, and an image is a plain file. Name one", path, kind)
}

// isUnchanged compares the metadata of a file, not its content.
func isUnchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// memory are the known digests of files, by their path: otherwise each of many disks with one file would read all of it, all at the same
// time.
var memory sync.Map

// known is the digest of a file at the time of info, which is nil if it is not known, and the verdict on it.
type known struct {
	turn    chan struct{}
	info    fs.FileInfo
	digest  string
	verdict *verdict
}

// memoryOf waits for its turn, so that only one caller reads the file and the other callers use its result.
func memoryOf(ctx context.Context, path string) (*known, error) {
	entry, _ := memory.LoadOrStore(path, &known{turn: make(chan struct{}, 1)})
	k := entry.(*known)
	select {
	case k.turn <- struct{}{}:
		return k, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (k *known) release() { <-k.turn }
