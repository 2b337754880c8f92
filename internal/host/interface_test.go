package host

import "testing"

// An address from a guest's agent is used in outputs and commands: only a plain one is accepted, and none with a zone, which is free
// text.
func TestReachable(t *testing.T) {
	for text, want := range map[string]bool{
		"192.0.2.1": true, "2001:db8::1": true, "127.0.0.1": false, "fe80::1": false, "::1": false, "web": false, "": false,
		"2001:db8::1%eth0": false, "2001:db8::1%;touch /tmp/x;#\x1b[2K": false, "192.0.2.1;ls": false,
	} {
		if _, ok := reachable(text); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
}
