package secret

import (
	"context"
	"errors"
	"strings"
	"testing"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

const id = "3f1f4a3e-5d0c-5b8e-9c5a-2f6d3c1b7a90"

var (
	record      = Record{ID: id, Owner: "team", Name: "web", Nonce: "n1", Version: "7"}
	credentials = volume.Credentials{Type: "iscsi", Secret: []byte("top-secret")}
)

// hostStub are a host's secrets, and the errors of its calls.
type hostStub struct {
	xml, value       map[string]string
	define, set, get error
}

func newStub() *hostStub { return &hostStub{xml: map[string]string{}, value: map[string]string{}} }

func (s *hostStub) DefineSecret(_ context.Context, text string) error {
	if s.define != nil {
		return s.define
	}
	var x libvirtxml.Secret
	if err := x.Unmarshal(text); err != nil {
		return err
	}
	s.xml[x.UUID] = text
	return nil
}

func (s *hostStub) SetSecretValue(_ context.Context, id string, value []byte) error {
	if s.set == nil {
		s.value[id] = string(value)
	}
	return s.set
}

func (s *hostStub) SecretXML(_ context.Context, id string) (string, error) {
	if text, ok := s.xml[id]; ok && s.get == nil {
		return text, nil
	}
	if s.get != nil {
		return "", s.get
	}
	return "", host.ErrNotFound
}

func (s *hostStub) UndefineSecret(_ context.Context, id string) error {
	delete(s.xml, id)
	delete(s.value, id)
	return nil
}

func TestPut(t *testing.T) {
	s := newStub()
	for _, r := range []Record{record, {ID: id, Owner: "team", Name: "web", Nonce: "n1", Version: "8", Volume: "a1"}} {
		if _, err := Put(t.Context(), s, r, credentials); err != nil {
			t.Fatal(err)
		}
		if got, err := Get(t.Context(), s, id); err != nil || got != r {
			t.Errorf("got %+v, %v, want %+v", got, err, r)
		}
	}
	if len(s.xml) != 1 || s.value[id] != "top-secret" {
		t.Errorf("the host has %v with the values %v", s.xml, s.value)
	}
	for _, part := range []string{`private="yes"`, `ephemeral="no"`, `<usage type="iscsi">`, "<target>virtclaim-" + id + "</target>"} {
		if !strings.Contains(s.xml[id], part) {
			t.Errorf("%s is missing in %s", part, s.xml[id])
		}
	}
	if strings.Contains(s.xml[id], "top-secret") {
		t.Error("the description tells the value")
	}
}

func TestPut_CephSecretByName(t *testing.T) {
	s := newStub()
	if _, err := Put(t.Context(), s, record, volume.Credentials{Type: "ceph", Secret: []byte("key")}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`<usage type="ceph">`, "<name>virtclaim-" + id + "</name>"} {
		if !strings.Contains(s.xml[id], part) {
			t.Errorf("%s is missing in %s", part, s.xml[id])
		}
	}
}

func TestPut_FailureIsReverted(t *testing.T) {
	s, broken := newStub(), errors.New("broken")
	s.set = broken
	undo, err := Put(t.Context(), s, record, credentials)
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := undo(t.Context()); err != nil || len(s.xml) != 0 {
		t.Errorf("%v; left on the host: %v", err, s.xml)
	}
}

// A failed replacement keeps the secret for the machines of the former binding.
func TestPut_RevertRestoresFormerSecret(t *testing.T) {
	for _, kept := range []string{"neither", "define", "value"} {
		t.Run("fails at "+kept, func(t *testing.T) {
			s, broken := newStub(), errors.New("broken")
			if _, err := Put(t.Context(), s, record, credentials); err != nil {
				t.Fatal(err)
			}
			s.define, s.set = map[string]error{"define": broken}[kept], map[string]error{"value": broken}[kept]
			next := record
			next.Nonce, next.Version = "n2", "8"
			undo, err := Put(t.Context(), s, next, volume.Credentials{Type: "iscsi", Secret: []byte("next")})
			if (err != nil) != (kept != "neither") {
				t.Errorf("got %v", err)
			}
			s.define, s.set = nil, nil
			if err := undo(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := record
			if kept != "define" {
				want.Version = "" // its value must be written again
			}
			if got, err := Get(t.Context(), s, id); err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func TestPut_RevertLeavesAdoptedSecret(t *testing.T) {
	s, third := newStub(), record
	third.Nonce = "n3"
	for _, before := range []bool{false, true} {
		if before {
			if _, err := Put(t.Context(), s, record, credentials); err != nil {
				t.Fatal(err)
			}
		}
		second := record
		second.Nonce = "n2"
		undo, err := Put(t.Context(), s, second, credentials)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Put(t.Context(), s, third, credentials); err != nil {
			t.Fatal(err)
		}
		if err := undo(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := Get(t.Context(), s, id); err != nil || got != third {
			t.Errorf("got %+v, %v, want %+v", got, err, third)
		}
	}
}

func TestPut_KeepsExistingSecret(t *testing.T) {
	s, broken := newStub(), errors.New("broken")
	if _, err := Put(t.Context(), s, record, credentials); err != nil {
		t.Fatal(err)
	}
	s.set = broken
	if _, err := Put(t.Context(), s, record, credentials); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if s.value[id] != "top-secret" {
		t.Error("the secret that machines use is gone")
	}
	if got, err := Get(t.Context(), s, id); err != nil || got.Version != "" {
		t.Errorf("it says that it is up to date: %+v, %v", got, err)
	}
}

func TestRemove_ForeignSecretsStay(t *testing.T) {
	for _, description := range []string{"", "mine", "virtclaim", "virtclaim binding %zz"} {
		foreign := libvirtxml.Secret{UUID: id, Description: description}
		text, err := foreign.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		s := newStub()
		s.xml[id], s.value[id] = text, "theirs"
		if _, err := Put(t.Context(), s, record, credentials); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), id) {
			t.Errorf("put over %q: %v", description, err)
		}
		if err := Remove(t.Context(), s, id, "n1"); !errors.Is(err, ErrForeign) {
			t.Errorf("remove %q: %v", description, err)
		}
		if s.xml[id] != text || s.value[id] != "theirs" {
			t.Errorf("%q was changed", description)
		}
	}
}

// A secret that a newer provider has written keeps its description and its value.
func TestPut_NewerProvider(t *testing.T) {
	s := newStub()
	if _, err := Put(t.Context(), s, record, credentials); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(s.xml[id], "</description>", " (version 2)</description>", 1)
	s.xml[id] = text
	next := record
	next.Nonce, next.Version = "n2", "8"
	_, read := Get(t.Context(), s, id)
	undo, put := Put(t.Context(), s, next, volume.Credentials{Type: "iscsi", Secret: []byte("next")})
	for name, err := range map[string]error{"get": read, "put": put, "remove": Remove(t.Context(), s, id, "n1")} {
		if !errors.Is(err, newer.Err) || !strings.Contains(err.Error(), id) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if undo != nil || s.xml[id] != text || s.value[id] != "top-secret" {
		t.Errorf("it was changed to %s, with the value %q", s.xml[id], s.value[id])
	}
}

func TestGet_HostErrorIsNotNotFound(t *testing.T) {
	s := newStub()
	s.get = &host.UnreachableError{Err: errors.New("no route")}
	if _, err := Put(t.Context(), s, record, credentials); !errors.Is(err, s.get) || len(s.xml) != 0 {
		t.Errorf("put: %v, and the host has %v", err, s.xml)
	}
	if err := Remove(t.Context(), s, id, "n1"); !errors.Is(err, s.get) {
		t.Errorf("remove: %v", err)
	}
}

func TestRemove(t *testing.T) {
	s := newStub()
	if _, err := Put(t.Context(), s, record, credentials); err != nil {
		t.Fatal(err)
	}
	if err := Remove(t.Context(), s, id, "another"); err != nil || len(s.xml) != 1 {
		t.Errorf("one that another binding has taken over: %v, and the host has %v", err, s.xml)
	}
	for range 2 { // a second removal is no error
		if err := Remove(t.Context(), s, id, "n1"); err != nil || len(s.xml) != 0 {
			t.Errorf("got %v, and the host has %v", err, s.xml)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add("team", "web", "n1", "7")
	f.Add("a&name=b", "ünï; <x>'\"", "\x00", "")
	f.Fuzz(func(t *testing.T, owner, name, nonce, version string) {
		s, want := newStub(), Record{ID: id, Owner: owner, Name: name, Nonce: nonce, Version: version}
		if _, err := Put(t.Context(), s, want, credentials); err != nil {
			t.Fatal(err)
		}
		if got, err := Get(t.Context(), s, id); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	})
}
