package volumepod

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
	"github.com/lima-vm/go-qcow2reader/image/qcow2"
	"github.com/lima-vm/go-qcow2reader/log"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// ErrNeedsScratch is the error of a qcow2 image whose clusters are not in the order of the disk.
var ErrNeedsScratch = errors.New("the clusters of the qcow2 image are not in the order of the disk, so that it can't be written as it comes. Give the pod " +
	"a folder for scratch space (--scratch, an emptyDir), or send the image as qemu-img convert writes it")

const compressionZstd = 1

func init() {
	log.SetWarnFunc(func(string) {})
	qcow2.SetDecompressor(compressionZstd, func(r io.Reader) (io.ReadCloser, error) {
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxCluster))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	})
}

// maxCluster is the maximal size of a cluster in bytes.
const maxCluster = 2 << 20

// convert writes the disk of a qcow2 image while that is read. r reads the image as Probe has accepted it.
func (w *writer) convert(r io.Reader, scratch string) (err error) {
	in := &unrolled{r: r, buffer: make([]byte, 256<<10), kept: &window{}}
	if scratch != "" {
		file, err := scratchFile(scratch)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		in.kept = file
	}
	if err := w.clusters(in); err != nil {
		return in.explain(err)
	}
	// What follows the last cluster counts for the checksum.
	_, err = io.Copy(io.Discard, r)
	return err
}

// scratchFile is a file without a name: it goes with the process.
func scratchFile(folder string) (*os.File, error) {
	file, err := os.CreateTemp(folder, "volume-*")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

func (w *writer) clusters(in io.ReaderAt) (err error) {
	// The library may fail in unforeseen ways on hostile tables.
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("%w: its tables can't be read: %v", image.ErrUntrusted, why)
		}
	}()
	disk, err := qcow2.Open(in, nil)
	if err == nil {
		err = disk.Readable()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", image.ErrUntrusted, err)
	}
	if v3 := disk.HeaderFieldsV3; v3 != nil && v3.IncompatibleFeatures>>qcow2.IncompatibleFeaturesExtendedL2EntriesBit&1 == 1 {
		return fmt.Errorf("%w: its clusters have subclusters. %s", image.ErrUntrusted, image.Convert("qcow2", "qcow2"))
	}
	buffer := make([]byte, max(chunk, maxCluster))
	for size := disk.Size(); w.at < size; {
		extent, err := disk.Extent(w.at, min(size-w.at, int64(len(buffer))))
		if err != nil {
			return err
		}
		n := min(extent.Length, size-w.at)
		switch {
		case n <= 0:
			return fmt.Errorf("%w: its tables can't be read at %d", image.ErrUntrusted, w.at)
		case extent.Zero:
			err = w.skip(n)
		default:
			if _, err = io.ReadFull(io.NewSectionReader(disk, w.at, n), buffer[:n]); err == nil {
				err = w.write(buffer[:n])
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unrolled reads at any offset of a stream, as far as what was passed is kept.
type unrolled struct {
	r      io.Reader
	buffer []byte
	passed int64
	err    error
	kept   interface {
		io.ReaderAt
		io.WriterAt
	}
}

func (u *unrolled) ReadAt(p []byte, at int64) (int, error) {
	for u.passed-at < int64(len(p)) && u.err == nil {
		var n int
		n, u.err = u.r.Read(u.buffer)
		if _, err := u.kept.WriteAt(u.buffer[:n], u.passed); err != nil {
			u.err = fmt.Errorf("keep a part of the image in the scratch space: %w", err)
			return 0, u.err
		}
		u.passed += int64(n)
	}
	n := max(0, min(int64(len(p)), u.passed-at))
	if got, err := u.kept.ReadAt(p[:n], at); err != nil {
		u.err = err
		return got, err
	}
	if n < int64(len(p)) {
		return int(n), u.err
	}
	return int(n), nil
}

// explain prefers the error of the stream to what the library makes of it.
func (u *unrolled) explain(err error) error {
	switch {
	case u.err != nil && !errors.Is(u.err, io.EOF):
		return u.err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: it is a qcow2 image that is cut off, or broken: get it again, and check it with qemu-img check", image.ErrUntrusted)
	}
	return err
}

// window keeps the last bytes of a stream.
type window struct {
	bytes [windowSize]byte
	end   int64
}

// windowSize is more than the tables between a cluster and the next, and than what is read of a compressed cluster beyond its end.
const windowSize = 4 * maxCluster

func (w *window) WriteAt(p []byte, at int64) (int, error) {
	for done := 0; done < len(p); {
		done += copy(w.bytes[(at+int64(done))%windowSize:], p[done:])
	}
	w.end = at + int64(len(p))
	return len(p), nil
}

func (w *window) ReadAt(p []byte, at int64) (int, error) {
	if at < w.end-windowSize {
		return 0, ErrNeedsScratch
	}
	for done := 0; done < len(p); {
		done += copy(p[done:], w.bytes[(at+int64(done))%windowSize:])
	}
	return len(p), nil
}
