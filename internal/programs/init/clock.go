//go:build linux

package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// setClock sets the time if the kernel could not: it reads the clock before a module for it is loaded.
func setClock() {
	const firstPlausibleYear = 2020
	if time.Now().Year() >= firstPlausibleYear {
		return
	}
	clock, err := os.Open("/dev/rtc0")
	if err != nil {
		return
	}
	defer clock.Close() //nolint:errcheck // it was only read
	read, err := unix.IoctlGetRTCTime(int(clock.Fd()))
	if err != nil {
		return
	}
	now := time.Date(int(read.Year)+1900, time.Month(read.Mon+1), int(read.Mday), int(read.Hour), int(read.Min), int(read.Sec), 0, time.UTC)
	value := unix.NsecToTimeval(now.UnixNano())
	if err := unix.Settimeofday(&value); err != nil {
		say("set the clock: %v", err)
	}
}
