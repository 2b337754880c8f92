//go:build linux

package main

import (
	"encoding/binary"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestBackoff(t *testing.T) {
	var b backoff
	for step, try := range []struct{ ran, want time.Duration }{
		{0, time.Second},
		{0, 2 * time.Second},
		{9 * time.Second, 4 * time.Second},
		{10 * time.Second, time.Second},
		{0, 2 * time.Second},
		{0, 4 * time.Second},
		{0, 8 * time.Second},
		{0, 16 * time.Second},
		{0, 32 * time.Second},
		{0, time.Minute},
		{0, time.Minute},
	} {
		if got := b.next(try.ran); got != try.want {
			t.Errorf("step %d: %v, and should be %v", step, got, try.want)
		}
	}
}

func TestRestarts(t *testing.T) {
	for _, try := range []struct {
		policy string
		code   int
		want   bool
	}{{"", 1, false}, {"never", 1, false}, {"on-failure", 0, false}, {"on-failure", 137, true}, {"always", 0, true}} {
		if got := restarts(try.policy, try.code); got != try.want {
			t.Errorf("%+v", try)
		}
	}
}

func TestExitCode(t *testing.T) {
	for status, want := range map[unix.WaitStatus]int{0: 0, 3 << 8: 3, 9: 137, 11 | 0x80: 139} {
		if got := exitCode(status); got != want {
			t.Errorf("%x: %d", status, got)
		}
	}
}

func TestIsPress(t *testing.T) {
	for _, try := range []struct {
		kind, code uint16
		value      uint32
		want       bool
	}{{1, 116, 1, true}, {1, 116, 0, false}, {1, 30, 1, false}, {0, 116, 1, false}} {
		event := binary.LittleEndian.AppendUint16(make([]byte, 16), try.kind)
		event = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint16(event, try.code), try.value)
		if len(event) != eventSize || isPress(event) != try.want {
			t.Errorf("%+v", try)
		}
	}
}
