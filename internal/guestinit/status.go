package guestinit

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// StatusSize is how much of the root disk's beginning the status has. ext4 leaves its first 1024 bytes to boot loaders.
const StatusSize = 512

const statusHead = "virtclaim 1\n"

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
}

// EncodeStatus returns the StatusSize bytes for the root disk.
func EncodeStatus(s Status) []byte {
	line := string(s.State)
	switch s.State {
	case Exited:
		line += " " + strconv.Itoa(s.ExitCode)
	case Failed:
		line += " " + shorten(printable(s.Message), StatusSize-len(statusHead)-len(Failed)-len(" \n"))
	case Running:
	}
	return append([]byte(statusHead+line+"\n"), make([]byte, StatusSize)...)[:StatusSize]
}

// ParseStatus reads the beginning of a root disk. The guest can have written anything there: what is returned is short and printable, but
// not necessarily true.
func ParseStatus(disk []byte) (Status, bool) {
	disk = disk[:min(len(disk), StatusSize)]
	text, found := bytes.CutPrefix(disk, []byte(statusHead))
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
		return Status{State: Exited, ExitCode: int(code)}, true
	case Failed:
		return Status{State: Failed, Message: printable(value)}, value != ""
	}
	return Status{}, false
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
