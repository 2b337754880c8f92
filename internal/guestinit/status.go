package guestinit

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// StatusSize is how much of the root disk's beginning the status has. ext4 leaves its first 1024 bytes to boot loaders. The first half is
// what earlier versions have written, and read.
const StatusSize = 1024

const (
	statusHead = "virtclaim 1\n"
	half       = StatusSize / 2
	endedHead  = "ended\n"
	stopHead   = "stopped\n"

	// MaxOutput is how much of a program's last output is kept, in bytes.
	MaxOutput = half - len(stopHead)
)

// State is how far a machine's program is.
type State string

// States of a machine's program.
const (
	Running State = "running"
	Exited  State = "exit"
	Failed  State = "failed" // it was never started
)

// Status is what init says about the program on the root disk.
type Status struct {
	State    State
	ExitCode int    // of Exited: 128 and the signal's number if one ended it
	Message  string // of Failed
	Ended    bool   // of Exited: by itself, and nothing has told it to stop
	Output   string // of Exited: the end of what it has printed, at most MaxOutput
}

// EncodeStatus returns the StatusSize bytes for the root disk.
func EncodeStatus(s Status) []byte {
	line := string(s.State)
	switch s.State {
	case Exited:
		line += " " + strconv.Itoa(s.ExitCode)
	case Failed:
		line += " " + shorten(printable(s.Message), half-len(statusHead)-len(Failed)-len(" \n"))
	case Running:
	}
	disk := make([]byte, StatusSize)
	copy(disk, statusHead+line+"\n")
	if s.State == Exited {
		head := stopHead
		if s.Ended {
			head = endedHead
		}
		copy(disk[half:], head+s.Output[max(0, len(s.Output)-MaxOutput):])
	}
	return disk
}

// ParseStatus reads the beginning of a root disk. The guest can have written anything there: what is returned is short and printable, but
// not necessarily true.
func ParseStatus(disk []byte) (Status, bool) {
	first, second := disk[:min(len(disk), half)], disk[min(len(disk), half):min(len(disk), StatusSize)]
	text, found := bytes.CutPrefix(first, []byte(statusHead))
	if !found {
		return Status{}, false
	}
	line, rest, found := bytes.Cut(text, []byte("\n"))
	if !found || len(bytes.Trim(rest, "\x00")) > 0 {
		return Status{}, false
	}
	state, value, hasValue := strings.Cut(string(line), " ")
	switch State(state) {
	case Running:
		return Status{State: Running}, !hasValue
	case Exited:
		code, err := strconv.ParseUint(value, 10, 8)
		if err != nil {
			return Status{}, false
		}
		s := Status{State: Exited, ExitCode: int(code)}
		s.Ended, s.Output = parseEnd(second)
		return s, true
	case Failed:
		return Status{State: Failed, Message: printable(value)}, value != ""
	}
	return Status{}, false
}

// parseEnd reads the second half, which earlier versions leave empty.
func parseEnd(disk []byte) (ended bool, output string) {
	text, ended := bytes.CutPrefix(disk, []byte(endedHead))
	if !ended {
		var stopped bool
		if text, stopped = bytes.CutPrefix(disk, []byte(stopHead)); !stopped {
			return false, ""
		}
	}
	text = bytes.TrimRight(text, "\x00")
	return ended, strings.TrimSpace(printable(string(text[max(0, len(text)-MaxOutput):])))
}

// printable replaces what could end a line or command a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}

// shorten cuts a text between two characters.
func shorten(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}
