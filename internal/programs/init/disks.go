//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	diskPatience = 10 * time.Second
	diskInterval = 20 * time.Millisecond
	// QEMU's virtio disks have no more of a serial number.
	longestSerial = 20
)

// awaitDisk returns the device of the disk with the serial number. Disks appear some time after their driver is loaded.
func awaitDisk(ctx context.Context, serial string) (string, error) {
	limit, cancel := context.WithTimeout(ctx, diskPatience)
	defer cancel()
	for {
		disks := disksBySerial(os.DirFS("/sys/block"))
		for found, device := range disks {
			if isSerial(found, serial) {
				return device, nil
			}
		}
		select {
		case <-time.After(diskInterval):
		case <-limit.Done():
			return "", fmt.Errorf("no disk has the serial number %q: attach it, with a driver that the initial RAM disk has; there are %s",
				serial, describeDisks(disks))
		}
	}
}

func isSerial(found, wanted string) bool {
	return found == wanted || len(found) == longestSerial && strings.HasPrefix(wanted, found)
}

func describeDisks(disks map[string]string) string {
	if len(disks) == 0 {
		return "no disks with one"
	}
	var all []string
	for serial, device := range disks {
		all = append(all, fmt.Sprintf("%q (%s)", serial, filepath.Base(device)))
	}
	return strings.Join(all, ", ")
}
