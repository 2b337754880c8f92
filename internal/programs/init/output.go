//go:build linux

package main

import (
	"bytes"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
)

const (
	drainPatience = 2 * time.Second
	ownLine       = "virtclaim: "
)

// An output is what all print from when it begins, this program, too, on its way to the console: as in container engines it is a pipe, so
// that lines can be given their time, and the last ones can be kept. Zero: they print to the console.
type output struct {
	console *os.File
	done    chan struct{}
	lines   lines
}

// begin makes the pipe the standard output of this process and, with that, of the program, whose standard input is empty.
func (o *output) begin(timestamps bool) error {
	console, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ends := make([]int, 2)
	if err := unix.Pipe2(ends, unix.O_CLOEXEC); err != nil {
		return err
	}
	none, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer none.Close() //nolint:errcheck // a handle without content
	for standard, of := range []int{int(none.Fd()), ends[1], ends[1]} {
		if err := unix.Dup3(of, standard, 0); err != nil {
			return err
		}
	}
	_ = unix.Close(ends[1])
	o.console, o.done = os.NewFile(uintptr(console), "console"), make(chan struct{})
	o.lines = lines{to: o.console, timestamps: timestamps, now: time.Now, isStart: true}
	go func() {
		defer sayPanic()
		defer close(o.done)
		_, _ = io.Copy(&o.lines, os.NewFile(uintptr(ends[0]), "output"))
	}()
	return nil
}

// end gives the console back, when all that was printed is there, and returns the last of it. What can't be killed may keep the pipe open.
func (o *output) end() string {
	if o.console == nil {
		return ""
	}
	for standard := 1; standard <= 2; standard++ {
		_ = unix.Dup3(int(o.console.Fd()), standard, 0)
	}
	select {
	case <-o.done:
		return string(o.lines.last)
	case <-time.After(drainPatience):
		return ""
	}
}

// lines writes lines to the console, and keeps the last of those that the program has printed.
type lines struct {
	to         io.Writer
	timestamps bool
	now        func() time.Time

	isStart, isOwn bool
	last           []byte
}

func (l *lines) Write(text []byte) (int, error) {
	for line := range bytes.Lines(text) {
		if l.isStart {
			l.isOwn = bytes.HasPrefix(line, []byte(ownLine))
			if l.timestamps {
				_, _ = io.WriteString(l.to, l.now().UTC().Format("2006-01-02T15:04:05.000Z "))
			}
		}
		l.isStart = bytes.HasSuffix(line, []byte("\n"))
		_, _ = l.to.Write(line) // without a console the program still runs
		if !l.isOwn {
			l.last = append(l.last, line...)
			l.last = l.last[max(0, len(l.last)-guestinit.MaxOutput):]
		}
	}
	return len(text), nil
}
