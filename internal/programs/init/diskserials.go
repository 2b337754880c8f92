//go:build linux

package main

import (
	"io/fs"
	"path"
	"strings"
)

// disksBySerial maps serial numbers to devices, of virtio and SCSI disks in /sys/block.
func disksBySerial(blocks fs.FS) map[string]string {
	disks := map[string]string{}
	add := func(pattern string, parse func([]byte) string) {
		files, _ := fs.Glob(blocks, pattern) // only a wrong pattern is an error
		for _, file := range files {
			content, err := fs.ReadFile(blocks, file)
			if err != nil {
				continue
			}
			if serial := parse(content); serial != "" {
				name, _, _ := strings.Cut(file, "/")
				disks[serial] = path.Join("/dev", name)
			}
		}
	}
	add("vd*/serial", func(content []byte) string { return strings.TrimSpace(string(content)) })
	add("sd*/device/vpd_pg80", parseUnitSerial)
	return disks
}

// parseUnitSerial reads the SCSI page with a unit's serial number, which follows a head of four bytes.
func parseUnitSerial(page []byte) string {
	const head = 4
	if len(page) < head {
		return ""
	}
	return strings.Trim(string(page[head:]), " \x00\n")
}
