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
	"sync"
)

// LocalFile is an image on the machine that Terraform runs on.
type LocalFile struct {
	Path string
	// Digest is what the file as it is on the disk must hash to, sha256:hex; empty if nothing was planned with it.
	Digest string
	// Limit is how many bytes the image may have, unpacked; 0 is MaxUnpacked.
	Limit int64
}

// Hash is the digest of the file as it is on the disk, sha256:hex. A file that did not change since is not read again, however
// many ask.
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

// Open gives the image's bytes, unpacked. io.EOF comes after all of it was read and the digest is right; the content is at
// fault where an error is ErrUntrusted. The end of ctx ends a Read that waits.
func (f LocalFile) Open(ctx context.Context) (io.ReadCloser, error) {
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
		if err := unpack(w, verify(contextReader{ctx, m.of(file, info.Size())}, want, -1, changed), f.Limit); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		return nil
	}), nil
}

// open looks before it opens: opening a pipe would wait for somebody who writes to it.
func (f LocalFile) open() (*os.File, fs.FileInfo, error) {
	seen, err := os.Stat(f.Path)
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

// isUnchanged tells by what a file system keeps of a file, not by its content.
func isUnchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// memory is what is known of files, by their path: many disks of one file would read all of it again, each at once.
var memory sync.Map

// known is the digest of a file as it was; a nil info is nothing.
type known struct {
	turn   chan struct{}
	info   fs.FileInfo
	digest string
}

// memoryOf waits for its turn, so that one reads the file and the others have the result.
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
