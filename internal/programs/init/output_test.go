//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
)

// Each line has one time, in however many pieces it comes, and init's own lines are not the program's last ones.
func TestLines_Write(t *testing.T) {
	var console strings.Builder
	l := lines{to: &console, timestamps: true, now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC) }, isStart: true}
	for _, piece := range []string{"one\ntw", "o\n", "virtclaim: exit 1\n", "three"} {
		if written, err := l.Write([]byte(piece)); written != len(piece) || err != nil {
			t.Errorf("%d, %v", written, err)
		}
	}
	const at = "2026-01-02T03:04:05.006Z "
	if want := at + "one\n" + at + "two\n" + at + "virtclaim: exit 1\n" + at + "three"; console.String() != want {
		t.Errorf("%q", console.String())
	}
	if got := string(l.last); got != "one\ntwo\nthree" {
		t.Errorf("the last lines are %q", got)
	}
	_, _ = l.Write([]byte(strings.Repeat("x", 2*guestinit.MaxOutput) + "end"))
	if len(l.last) != guestinit.MaxOutput || !strings.HasSuffix(string(l.last), "xend") {
		t.Errorf("it keeps %d bytes", len(l.last))
	}
}
