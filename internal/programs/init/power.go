//go:build linux

package main

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// watchPowerButton makes the power button, by which hosts shut down machines, a SIGPWR of process 1.
func (m *machine) watchPowerButton() {
	names, _ := filepath.Glob("/sys/class/input/event*/device/name") // only a wrong pattern is an error
	watched := false
	for _, name := range names {
		content, err := os.ReadFile(name)
		// Machines without ACPI, as some of arm64, have the button on a pin.
		if err != nil || !slices.Contains([]string{"Power Button", "gpio-keys"}, strings.TrimSpace(string(content))) {
			continue
		}
		device := filepath.Base(filepath.Dir(filepath.Dir(name)))
		events, err := os.Open(filepath.Join("/dev/input", device))
		if err != nil {
			say("power button: %v", err)
			continue
		}
		watched = true
		go func() {
			defer sayPanic()
			awaitPresses(events)
		}()
	}
	if !watched {
		say("there is no power button: the machine can only be stopped by force (modules button and evdev)")
	}
}

func awaitPresses(events io.Reader) {
	event := make([]byte, eventSize)
	for {
		if _, err := io.ReadFull(events, event); err != nil {
			return
		}
		if isPress(event) {
			_ = unix.Kill(os.Getpid(), unix.SIGPWR)
		}
	}
}

// eventSize is that of struct input_event on 64-bit systems: a time of 16 bytes, a type, a code and a value.
const eventSize = 24

func isPress(event []byte) bool {
	const keyType, powerKey, pressed = 1, 116, 1
	return binary.LittleEndian.Uint16(event[16:]) == keyType && binary.LittleEndian.Uint16(event[18:]) == powerKey &&
		binary.LittleEndian.Uint32(event[20:]) == pressed
}
