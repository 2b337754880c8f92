package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// readerUser is authenticated, and has only the rights that RBAC grants.
const readerUser = "reader"

// ensureToken returns the reader's token from a file in kube-apiserver's CSV
// format, and creates the file if it is missing.
func ensureToken(path string) (string, error) {
	line, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		token := rand.Text()
		if err := writeSecret(path, fmt.Appendf(nil, "%s,%s,%s\n", token, readerUser, readerUser)); err != nil {
			return "", fmt.Errorf("write the token file: %w", err)
		}
		return token, nil
	}
	if err != nil {
		return "", fmt.Errorf("read the token file: %w", err)
	}
	token, _, found := strings.Cut(string(line), ",")
	if !found || token == "" {
		return "", fmt.Errorf("the token file %s has no token; remove it to get a new one", path)
	}
	return token, nil
}
