//go:build linux

package main

import "golang.org/x/sys/unix"

// awaitRandomness has the kernel collect randomness, for a machine without a source of it: it begins when a program waits for some, and not
// for one that asks again and again, as that for DHCP does.
func awaitRandomness() {
	go func() { _, _ = unix.Getrandom(make([]byte, 1), 0) }()
}
