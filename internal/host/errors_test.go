package host

import (
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
