package lab

import "os"

// makeImage creates a sparse file of a raw disk that starts with content.
func makeImage(path string, size int64, content []byte) error {
	if err := os.WriteFile(path, content, 0o600); err != nil { //nolint:gosec // the names are the tests' own
		return err
	}
	return os.Truncate(path, size)
}
