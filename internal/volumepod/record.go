package volumepod

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// recordFile is beside disk.img, and says what is in it.
const recordFile = "disk.img.json"

// record writes what is in a complete volume. A block device has no room for it.
func record(path string, f Filled) error {
	if is, err := os.Stat(path); err != nil || !is.IsDir() {
		return err
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	temporary := filepath.Join(path, "."+recordFile)
	if err := os.WriteFile(temporary, append(text, '\n'), 0o664); err != nil { //nolint:gosec // for other users of the volume's group
		return err
	}
	return os.Rename(temporary, filepath.Join(path, recordFile))
}

// recorded is what a former pod has recorded of the volume; false if there is nothing.
func recorded(path string) (f Filled, ok bool) {
	text, err := os.ReadFile(filepath.Join(path, recordFile))
	return f, err == nil && json.Unmarshal(text, &f) == nil
}

// forget removes the record of a volume.
func forget(path string) error {
	err := os.Remove(filepath.Join(path, recordFile))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}
