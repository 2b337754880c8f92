// Command pack builds init for each architecture, and compresses it into the folder bin of package guestinit, where it is run. Equal
// sources make equal files.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

func main() {
	for _, architecture := range []string{"amd64", "arm64"} {
		if err := pack(context.Background(), architecture); err != nil {
			fmt.Fprintf(os.Stderr, "pack: init for %s: %v\n", architecture, err)
			os.Exit(1)
		}
	}
}

func pack(ctx context.Context, architecture string) error {
	program := filepath.Join("bin", "init-"+architecture)
	build := exec.CommandContext(ctx, "go", "build", "-tags", "guestinit", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid=", "-o", program, "../programs/init")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	// Renamed, because another build may embed the file at this moment.
	partial := program + ".partial"
	if err := os.WriteFile(partial, encoder.EncodeAll(content, nil), 0o600); err != nil { //nolint:gosec // its name is a constant
		return err
	}
	if err := os.Rename(partial, program+".zst"); err != nil {
		return err
	}
	return os.Remove(program)
}
