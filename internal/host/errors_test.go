package host

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/digitalocean/go-libvirt"
)

// QEMU repeats messages of storage servers. Only the first line of an error begins where Terraform's own words do.
func TestError_IndentsForeignLines(t *testing.T) {
	err := &Error{Host: "a", URI: "qemu:///system", Op: "start domain web", Err: libvirt.Error{Message: "refused\nError: forged\n"}}
	if got, want := err.Error(), "host a (qemu:///system): start domain web: refused\n    Error: forged"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestError_UnreachableHostHasRemedy(t *testing.T) {
	for _, c := range []struct {
		uri   string
		cause error
		want  string
	}{
		{"qemu:///system", fs.ErrPermission, "usermod -aG libvirt <user>, and log in again). Test: virsh -c 'qemu:///system' list"},
		{
			"qemu+ssh://root@node-a:2222/system", errors.New("Connection refused."),
			"can't be reached: Connection refused. Check that this works, and asks nothing: ssh -o BatchMode=yes -p 2222 root@node-a true",
		},
		{"qemu+ssh://node-a/system?command=/x/ssh", fs.ErrPermission, "asks nothing: ssh -o BatchMode=yes node-a true"},
		{"qemu+tls://node-a/system", fs.ErrPermission, "Check that libvirtd runs there"}, // the cause names the key that can't be read
		{"qemu+tls://node-a/system", errors.New("no route"), "can't be reached: no route. Check that libvirtd runs there"},
	} {
		got := (&Error{Host: "a", URI: c.uri, Op: "look up domain web", Err: &UnreachableError{c.cause}}).Error()
		if !strings.Contains(got, c.want) || strings.Contains(got, "web") {
			t.Errorf("%s: got %s", c.uri, got)
		}
	}
	broken := &Error{Host: "a", URI: "qemu:///system", Op: "start domain web", Err: typed(libvirt.ErrInterrupted)}
	if got := broken.Error(); !strings.Contains(got, "start domain web: libvirt can't be reached: the connection broke") {
		t.Errorf("got %s", got)
	}
}

func TestDescribe_NamesHostOnce(t *testing.T) {
	failed := errors.New("refused")
	if got, want := Describe("Disk web", "a", failed), "Disk web on host a: refused"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	on := &Error{Host: "a", URI: "qemu:///system", Op: "start", Err: failed}
	if got, want := Describe("Disk web", "a", on), "Disk web: host a (qemu:///system): start: refused"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Describe("Disk web", "b", on), "Disk web on host b: host a (qemu:///system): start: refused"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
