package domainxml

import (
	"strings"
	"testing"
)

// protected returns a machine whose display requires a password.
func protected(version int64, password string) Machine {
	m := machines()["spice"]
	m.Graphics = &Graphics{Type: VNC, Listen: "127.0.0.1", Password: password, PasswordVersion: &version}
	return m
}

func TestGraphics_PasswordFollowsItsVersion(t *testing.T) {
	text, err := Build(protected(1, "first"))
	if err != nil {
		t.Fatal(err)
	}
	byHand := machines()["spice"]
	byHand.Graphics = &Graphics{Type: VNC, Listen: "127.0.0.1"}
	for name, c := range map[string]struct {
		before string
		want   Machine
		passwd string
	}{
		"at creation":                 {text, protected(1, "first"), "first"},
		"same version":                {text, protected(1, "second"), "first"},
		"another version":             {text, protected(2, "second"), "second"},
		"taken out":                   {text, byHand, ""},
		"removed by hand":             {strings.Replace(text, ` passwd="first"`, "", 1), protected(1, "first"), "first"},
		"another kind of display":     {strings.Replace(text, `type="vnc"`, `type="spice"`, 1), protected(1, "first"), "first"},
		"somebody else's, not wanted": {strings.Replace(text, "<password-version>1</password-version>", "", 1), byHand, "first"},
	} {
		t.Run(name, func(t *testing.T) {
			after, err := domain(t, c.before).Update(c.want)
			if err != nil {
				t.Fatal(err)
			}
			d, err := Unmarshal(after)
			if err != nil {
				t.Fatal(err)
			}
			if is, _, _ := displayOf(d); *is.passwd != c.passwd || is.kind != VNC {
				t.Errorf("the password is %q, want %q, of a %s", *is.passwd, c.passwd, is.kind)
			}
		})
	}
}

func TestGraphics_MissingPasswordIsDrift(t *testing.T) {
	text, err := Build(protected(1, "first"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(text)
	if err != nil || m.Graphics.PasswordVersion == nil || *m.Graphics.PasswordVersion != 1 || m.Graphics.Password != "" {
		t.Errorf("read is %+v, %v", m.Graphics, err)
	}
	if m, err = Parse(strings.Replace(text, ` passwd="first"`, "", 1)); err != nil || m.Graphics.PasswordVersion != nil {
		t.Errorf("without a password read is %+v, %v", m.Graphics, err)
	}
}

func TestGraphics_PasswordOfRunningDisplay(t *testing.T) {
	text, err := Build(protected(1, "first"))
	if err != nil {
		t.Fatal(err)
	}
	open := machines()["spice"]
	open.Graphics = &Graphics{Type: VNC, Listen: "127.0.0.1"}
	without, err := Build(open)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		stored, live string
		want         Machine
		changes      bool
		pending      int
	}{
		"another version":         {text, text, protected(2, "second"), true, 0},
		"same version":            {text, text, protected(1, "second"), false, 0},
		"started without":         {without, without, protected(1, "first"), false, 1},
		"started without, stored": {text, without, protected(2, "second"), false, 1},
		"taken out":               {text, text, open, false, 1},
		"never asked for":         {without, without, open, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			element, err := domain(t, c.live).Unlocks(domain(t, c.stored), c.want)
			if err != nil || (element != "") != c.changes || c.changes && !strings.Contains(element, `passwd="second"`) {
				t.Errorf("the element is %q, %v", element, err)
			}
			if pending, err := domain(t, c.live).Pending(c.want); len(pending) != c.pending || err != nil {
				t.Errorf("pending are %v, %v", pending, err)
			}
		})
	}
}

// A display without an address listens where the host's libvirt has it, which is the default: it reads as that, and is not changed.
func TestGraphics_WithoutAddress(t *testing.T) {
	const text = `<domain><name>a</name><devices><graphics type="spice" autoport="yes"><listen type="address"></listen></graphics></devices></domain>`
	m, err := Parse(text)
	if err != nil || m.Graphics == nil || m.Graphics.Listen != Localhost {
		t.Fatalf("read is %+v, %v", m.Graphics, err)
	}
	if same, err := domain(t, text).Update(m); err != nil || strings.Contains(same, Localhost) {
		t.Errorf("the display was changed: %v\n%s", err, same)
	}
	m.Graphics.Listen = "0.0.0.0"
	if other, err := domain(t, text).Update(m); err != nil || !strings.Contains(other, `address="0.0.0.0"`) {
		t.Errorf("the display was not changed: %v\n%s", err, other)
	}
}
