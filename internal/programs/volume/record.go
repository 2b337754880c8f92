package volume

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

const (
	// recordFile is beside disk.img, and says what is in it once that has no marker.
	recordFile = "disk.img.json"
	maxRecord  = 64 << 10
)

// writeRecord writes what is in a volume. A block device has no room for it. A user of the filesystem may have put anything there.
func writeRecord(path string, f podwire.Filled) error {
	if is, err := os.Stat(path); err != nil || !is.IsDir() {
		return err
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	temporary := filepath.Join(path, "."+recordFile)
	if err := remove(temporary); err != nil {
		return err
	}
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o664) //nolint:gosec // for other users of the volume's group
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", temporary, err)
	}
	return os.Rename(temporary, filepath.Join(path, recordFile))
}

// readRecord returns what was recorded of the volume; false if there is nothing.
func readRecord(path string) (f podwire.Filled, ok bool) {
	file, err := os.OpenFile(filepath.Join(path, recordFile), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return f, false
	}
	defer func() { _ = file.Close() }()
	if is, err := file.Stat(); err != nil || !is.Mode().IsRegular() {
		return f, false
	}
	text, err := io.ReadAll(io.LimitReader(file, maxRecord))
	return f, err == nil && newer.JSON(text) == nil && json.Unmarshal(text, &f) == nil
}

// removeRecord removes the record of a volume.
func removeRecord(path string) error { return remove(filepath.Join(path, recordFile)) }

func remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}
