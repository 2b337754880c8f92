package host

import (
	"errors"
	"strings"
	"testing"
)

// What a guest says neither ends a line nor fills a screen.
func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "none"},
		{errors.New("no\nsuch \x1b[2J"), `"no\nsuch \x1b[2J"`},
		{&Error{Host: "a", URI: "qemu:///system", Op: "ask", Err: errors.New(strings.Repeat("x", 200) + ": no such file")}, `"` + strings.Repeat("x", 66) + `: no such file"`},
	} {
		if got := Answer(c.err); got != c.want {
			t.Errorf("%v is %s", c.err, got)
		}
	}
	for _, text := range []string{strings.Repeat("x", 1000), strings.Repeat("\x00", 1000), strings.Repeat("\U000e0001", 1000)} {
		if got := Quoted(text); len(got) > 102 || len(got) < 80 {
			t.Errorf("%q… is %d bytes: %s", text[:4], len(got), got)
		}
	}
}
