//go:build linux

package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// say writes a line to the console. There are few, since the program writes there, too.
func say(format string, arguments ...any) {
	_, _ = fmt.Fprintf(os.Stdout, ownLine+format+"\n", arguments...)
}

// openConsole makes the console the standard files, also where the initial RAM disk has no device for it.
func openConsole() {
	file, err := os.OpenFile("/dev/console", os.O_RDWR, 0)
	if err != nil {
		// A machine may have none.
		if file, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
			return
		}
	}
	for standard := range 3 {
		_ = unix.Dup3(int(file.Fd()), standard, 0)
	}
	_ = file.Close()
}

// drainConsole waits until the last words are out: without power the kernel's buffer is gone.
func drainConsole() { _ = unix.IoctlSetInt(unix.Stdout, unix.TCSBRK, 1) } // as tcdrain does

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// sayPanic keeps a mistake in a goroutine from ending process 1, and with it the kernel.
func sayPanic() {
	if mistake := recover(); mistake != nil {
		say("a mistake in init: %v", mistake)
	}
}
