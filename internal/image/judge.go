package image

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
)

// HeaderOf returns what an opened image is, and closes it: only its beginning is read.
func HeaderOf(image io.ReadCloser) (Header, error) {
	defer func() { _ = image.Close() }()
	head, err := peek(bufio.NewReaderSize(image, HeadSize), HeadSize)
	if err != nil {
		return Header{}, err
	}
	return Probe(head)
}

// peek returns the next n bytes, or all there are.
func peek(r *bufio.Reader, n int) ([]byte, error) {
	head, err := r.Peek(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return bytes.Clone(head), nil // the buffer is reused
}

// Head returns what the file is, unpacked, by its beginning, and its length in bytes; 0 if that is not known because it is packed.
func (f LocalFile) Head(ctx context.Context) (is Header, length int64, err error) {
	file, info, err := f.open()
	if err != nil {
		return is, 0, err
	}
	defer func() { _ = file.Close() }()
	if packed, err := isPacked(file); err != nil || !packed {
		length = info.Size()
	}
	image, err := f.Open(ctx)
	if err != nil {
		return is, 0, err
	}
	is, err = HeaderOf(image)
	return is, length, f.explain(err)
}

// Judge reads all of the file, and makes the checks of an upload that need no host. length is that of the unpacked image, in bytes. What a
// packed qcow2 image lacks is only seen on a host. The result is cached for all disks of this process until the file changes.
func (f LocalFile) Judge(ctx context.Context) (is Header, length int64, err error) {
	file, info, err := f.open()
	if err != nil {
		return is, 0, err
	}
	defer func() { _ = file.Close() }()
	known, err := memoryOf(ctx, f.Path)
	if err != nil {
		return is, 0, err
	}
	defer known.release()
	if v := known.verdict; v == nil || !isUnchanged(v.info, info) {
		is, length, err = f.judge(ctx, file)
		if ctx.Err() != nil {
			return is, 0, err
		}
		known.verdict = &verdict{info, is, length, f.explain(err)}
	}
	return known.verdict.is, known.verdict.length, known.verdict.err
}

// verdict is what was found of a file at the time of info.
type verdict struct {
	info   fs.FileInfo
	is     Header
	length int64
	err    error
}

func (f LocalFile) judge(ctx context.Context, file io.ReaderAt) (is Header, length int64, err error) {
	image, err := f.Open(ctx)
	if err != nil {
		return is, 0, err
	}
	defer func() { _ = image.Close() }()
	content := bufio.NewReaderSize(image, HeadSize)
	head, err := peek(content, HeadSize)
	if err != nil {
		return is, 0, err
	}
	if is, err = Probe(head); err != nil {
		return is, 0, err
	}
	if length, err = io.Copy(io.Discard, Bounded(content, head)); err != nil {
		return is, length, err
	}
	if packed, err := isPacked(file); err != nil || packed {
		return is, length, err
	}
	return is, length, CheckWhole(head, length, file)
}

func isPacked(file io.ReaderAt) (bool, error) {
	head := make([]byte, headSize)
	err := readPadded(file, head, 0)
	return packingOf(head) != "", err
}
