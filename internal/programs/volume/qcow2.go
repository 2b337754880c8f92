package volume

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
	"github.com/lima-vm/go-qcow2reader/image/qcow2"
	"github.com/lima-vm/go-qcow2reader/log"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// ErrNeedsScratch is the error of a qcow2 image whose clusters are not in the order of the disk.
var ErrNeedsScratch = errors.New("the clusters of the qcow2 image are not in the order of the disk, so that it can't be written as it " +
	"comes. Give the pod a folder for scratch space (--scratch, an emptyDir), or convert the image: " +
	image.ConvertCommand("qcow2", "qcow2", "<image>"))

func init() {
	log.SetWarnFunc(func(string) {})
	qcow2.SetDecompressor(qcow2.CompressionTypeZlib, func(r io.Reader) (io.ReadCloser, error) {
		return io.NopCloser(wholeReads{flate.NewReader(r)}), nil
	})
	qcow2.SetDecompressor(compressionZstd, func(r io.Reader) (io.ReadCloser, error) {
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxCluster))
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{wholeReads{d}, d.IOReadCloser()}, nil
	})
}

const compressionZstd = 1

// wholeReads fills what it is asked for: the library unpacks a cluster from its beginning for each Read.
type wholeReads struct{ io.Reader }

func (w wholeReads) Read(p []byte) (int, error) {
	n, err := io.ReadFull(w.Reader, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}

// maxCluster is the maximal size of a cluster in bytes.
const maxCluster = 2 << 20

// checkReadable refuses what the library can't read of images that Probe has accepted.
func checkReadable(head []byte) error {
	const version, incompatible = 4, 72
	if binary.BigEndian.Uint32(head[version:]) < 3 {
		return nil
	}
	if binary.BigEndian.Uint64(head[incompatible:])>>qcow2.IncompatibleFeaturesExtendedL2EntriesBit&1 == 1 {
		return fmt.Errorf("%w: its clusters have subclusters. %s", image.ErrUntrusted, image.Convert("qcow2", "qcow2"))
	}
	return nil
}

// convert writes the disk of a qcow2 image while that is read. r reads the image as Probe has accepted it.
func (w *writer) convert(r io.Reader, scratch string) (err error) {
	in := &streamReaderAt{r: r}
	if scratch != "" {
		if in.scratch, err = scratchFile(scratch); err != nil {
			return err
		}
		defer func() { _ = in.scratch.Close() }()
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

func (w *writer) clusters(in *streamReaderAt) (err error) {
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
			// In smaller clusters, a read also needs tables that are needed again. So may other clusters what is beside a compressed one.
			in.once = disk.ClusterBits >= blockBits && !extent.Compressed
			if _, err = io.ReadFull(io.NewSectionReader(disk, w.at, n), buffer[:n]); err == nil {
				err = w.write(buffer[:n])
			}
			in.once = false
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// streamReaderAt reads at any offset of a stream. It keeps the last bytes in memory, and of what was before them those in the scratch space
// that have not been read as the content of a cluster.
type streamReaderAt struct {
	r       io.Reader
	passed  int64
	err     error
	recent  [windowSize]byte
	used    [windowSize / block]int // how many bytes of a recent block need not be kept
	once    bool                    // whether what is read now is not needed again
	scratch *os.File                // nil if there is none
	kept    []uint64                // a bit for each block that is in the scratch space
	older   [block]byte             // the last block that was read from there
	olderIs int64
}

const (
	blockBits = 16
	// windowSize is more than the tables between a cluster and the next, and than what is read of a compressed cluster beyond its end.
	windowSize = 4 * maxCluster
)

// ReadAt implements io.ReaderAt.
func (u *streamReaderAt) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		for u.passed <= at && u.err == nil {
			u.err = u.next()
		}
		if at >= u.passed {
			return n, u.err
		}
		number := at / block
		isRecent := number > (u.passed-1)/block-int64(len(u.used))
		from := u.recent[number*block%windowSize:][:block]
		if !isRecent {
			if from, err = u.old(number); err != nil {
				u.err = err
				return n, err
			}
		}
		part := copy(p[n:], from[at%block:min(block, u.passed-number*block)])
		if u.once && isRecent {
			u.used[number%int64(len(u.used))] += part
		}
		n, at = n+part, at+int64(part)
	}
	return n, nil
}

// next reads a block of the stream.
func (u *streamReaderAt) next() error {
	slot := u.recent[u.passed%windowSize:][:block]
	used := &u.used[u.passed/block%int64(len(u.used))]
	if old := u.passed - windowSize; old >= 0 && *used < block && u.scratch != nil {
		if _, err := u.scratch.WriteAt(slot, old); err != nil {
			return fmt.Errorf("keep a part of the image in the scratch space: %w", err)
		}
		for old/block/64 >= int64(len(u.kept)) {
			u.kept = append(u.kept, 0)
		}
		u.kept[old/block/64] |= 1 << (old / block % 64)
	}
	*used = 0
	n, err := io.ReadFull(u.r, slot)
	u.passed += int64(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return err
}

// old returns a block that is not in memory any more.
func (u *streamReaderAt) old(number int64) ([]byte, error) {
	switch {
	case u.scratch == nil:
		return nil, ErrNeedsScratch
	case number/64 >= int64(len(u.kept)) || u.kept[number/64]>>(number%64)&1 == 0:
		return nil, fmt.Errorf("%w: parts of its disk are in the same cluster. %s", image.ErrUntrusted, image.Convert("qcow2", "qcow2"))
	case u.olderIs == number+1:
		return u.older[:], nil
	}
	u.olderIs = number + 1
	if _, err := u.scratch.ReadAt(u.older[:], number*block); err != nil {
		return nil, err
	}
	return u.older[:], nil
}

// explain prefers the error of the stream to what the library makes of it.
func (u *streamReaderAt) explain(err error) error {
	switch {
	case u.err != nil && !errors.Is(u.err, io.EOF):
		return u.err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: it is a qcow2 image that is cut off, or broken: get it again, and check it with qemu-img check",
			image.ErrUntrusted)
	}
	return err
}
