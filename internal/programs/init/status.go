//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
)

// writeStatus writes through the device's cache, which it has in common with a mounted ext4.
func writeStatus(device string, status guestinit.Status) error {
	if device == "" {
		return nil
	}
	file, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	_, err = file.WriteAt(guestinit.EncodeStatus(status), 0)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}
