package guestinit

import (
	"fmt"
	"strconv"
	"strings"
)

// Numbers of Linux, which amd64 and arm64 share. The provider may run on a system that has others.
var signals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "USR1": 10, "SEGV": 11, "USR2": 12,
	"PIPE": 13, "ALRM": 14, "TERM": 15, "STKFLT": 16, "CHLD": 17, "CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21, "TTOU": 22, "URG": 23,
	"XCPU": 24, "XFSZ": 25, "VTALRM": 26, "PROF": 27, "WINCH": 28, "IO": 29, "POLL": 29, "PWR": 30, "SYS": 31,
}

const (
	terminate = 15
	// The C libraries keep the first two real-time signals to themselves.
	firstRealTime, lastSignal = 34, 64
)

// ParseSignal returns the number of a signal: SIGTERM, TERM, SIGRTMIN+3, 15. Empty is SIGTERM.
func ParseSignal(text string) (int, error) {
	if text == "" {
		return terminate, nil
	}
	if number, err := strconv.Atoi(text); err == nil && number >= 1 && number <= lastSignal {
		return number, nil
	}
	name := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	if number, found := signals[name]; found {
		return number, nil
	}
	if number, found := parseRealTime(name); found {
		return number, nil
	}
	return 0, fmt.Errorf("%q is no signal: write one as SIGTERM, TERM or 15", text)
}

func parseRealTime(name string) (int, bool) {
	for _, end := range []struct {
		name   string
		number int
	}{{"RTMIN", firstRealTime}, {"RTMAX", lastSignal}} {
		rest, found := strings.CutPrefix(name, end.name)
		if !found {
			continue
		}
		if rest == "" {
			return end.number, true
		}
		offset, err := strconv.Atoi(rest)
		number := end.number + offset
		return number, err == nil && (rest[0] == '+' || rest[0] == '-') && number >= firstRealTime && number <= lastSignal
	}
	return 0, false
}
