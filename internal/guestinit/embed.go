// Init uses this package without the programs, or each build of it would have the one before.
//go:build !guestinit

package guestinit

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/klauspost/compress/zstd"
)

// The folder has a .gitignore, so that the provider compiles without the programs, too.
//
//go:embed all:bin
var programs embed.FS

// ErrNotBuilt is a provider without the program of an architecture.
var ErrNotBuilt = errors.New("this provider was built without it")

// Binary returns init for an architecture in Go's spelling: amd64, arm64.
func Binary(architecture string) ([]byte, error) {
	packed, err := programs.ReadFile("bin/init-" + architecture + ".zst")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil,
			fmt.Errorf("init for %s: %w: build one with make build (or go generate ./internal/guestinit first); there are amd64 and arm64",
				architecture, ErrNotBuilt)
	}
	if err != nil {
		return nil, fmt.Errorf("init for %s: %w", architecture, err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("init for %s: %w", architecture, err)
	}
	defer decoder.Close()
	program, err := decoder.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("init for %s: decompress it: %w", architecture, err)
	}
	return program, nil
}
