// Package blank has ranges of files and devices read as zeros.
package blank

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

var zeros = make([]byte, 1<<20)

// Range makes a hole of a range, or has it filled with the kernel's or our own zeros where the file can't have holes.
func Range(file *os.File, at, n int64) error {
	for _, mode := range []uint32{
		unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE,
		unix.FALLOC_FL_ZERO_RANGE | unix.FALLOC_FL_KEEP_SIZE,
	} {
		err := unix.Fallocate(int(file.Fd()), mode, at, n)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
			return fmt.Errorf("blank %d bytes of %s: %w", n, file.Name(), err)
		}
	}
	for end := at + n; at < end; {
		part := zeros[:min(end-at, int64(len(zeros)))]
		if _, err := file.WriteAt(part, at); err != nil {
			return err
		}
		at += int64(len(part))
	}
	return nil
}
