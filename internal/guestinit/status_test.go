package guestinit

import (
	"strings"
	"testing"
	"unicode"
)

func TestStatus_EncodeParse(t *testing.T) {
	for _, s := range []Status{
		{State: Running},
		{State: Exited},
		{State: Exited, ExitCode: 255},
		{State: Failed, Message: `entrypoint "nginx": no such file`},
		{State: Exited, ExitCode: 1, Ended: true, Output: "no space left"},
		{State: Exited, ExitCode: 143, Output: strings.Repeat("a", MaxOutput)},
	} {
		disk := EncodeStatus(s)
		if len(disk) != StatusSize {
			t.Errorf("%+v has %d bytes", s, len(disk))
		}
		if got, found := ParseStatus(append(disk, 1, 2, 3)); !found || got != s {
			t.Errorf("%+v is read as %+v, %v", s, got, found)
		}
	}
}

func TestEncodeStatus_LongMessage(t *testing.T) {
	got, found := ParseStatus(EncodeStatus(Status{State: Failed, Message: strings.Repeat("ä\nö\t", StatusSize)}))
	if !found || !strings.HasPrefix(got.Message, "ä ö ä") || len(got.Message) > StatusSize || strings.ContainsRune(got.Message, '?') {
		t.Errorf("%v: %q", found, got.Message)
	}
}

// What ended before this half of the status existed was perhaps told to stop.
func TestParseStatus_OfEarlierInit(t *testing.T) {
	if s, found := ParseStatus([]byte("virtclaim 1\nexit 3\n" + strings.Repeat("\x00", StatusSize))); !found || s != (Status{State: Exited, ExitCode: 3}) {
		t.Errorf("%+v, %v", s, found)
	}
}

// Only the end of what was printed is kept, on one line.
func TestEncodeStatus_LongOutput(t *testing.T) {
	s, found := ParseStatus(EncodeStatus(Status{State: Exited, Ended: true, Output: strings.Repeat("ä", StatusSize) + "\nend\x1b\r\n"}))
	if !found || !s.Ended || !strings.HasSuffix(s.Output, "ä end??") || len(s.Output) > MaxOutput {
		t.Errorf("%+v, %v", s, found)
	}
}

// A guest can write anything.
func TestParseStatus_Refuses(t *testing.T) {
	for _, disk := range []string{
		"", "virtclaim 1\n", "virtclaim 2\nrunning\n", "virtclaim 1\nrunning", "virtclaim 1\nrunning 1\n", "virtclaim 1\nexit\n", "virtclaim 1\nexit 256\n",
		"virtclaim 1\nexit -1\n", "virtclaim 1\nexit +1\n", "virtclaim 1\nfailed\n", "virtclaim 1\nrunning\nmore", "virtclaim 1\nfailed " + strings.Repeat("a", StatusSize),
	} {
		if s, found := ParseStatus([]byte(disk)); found {
			t.Errorf("%q is %+v", disk, s)
		}
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("virtclaim 1\nexit 3\n"))
	f.Add([]byte("virtclaim 1\nfailed \x1b[2J\xff\u202e\n"))
	f.Fuzz(func(t *testing.T, disk []byte) {
		s, found := ParseStatus(disk)
		if !found {
			return
		}
		if len(s.Message) > 3*StatusSize || strings.ContainsFunc(s.Message, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", s.Message)
		}
		if len(s.Output) > MaxOutput || strings.ContainsFunc(s.Output, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", s.Output)
		}
		if again, found := ParseStatus(EncodeStatus(s)); !found || again != s {
			t.Errorf("%+v is read as %+v", s, again)
		}
	})
}
