// Package source finds out where a volume is. Its subpackages are the kinds of sources; what they share is here: the
// result, the kinds of errors, names, addresses and credentials, and what names storage to QEMU.
package source

import (
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Resolved is what a source led to.
type Resolved struct {
	// Volume lacks what its binding adds: the access mode and hosts of its images and the secret UUID of their Auth.
	Volume volume.Volume
	// Credentials are those of the volume's Auth; nil when it asks for none.
	Credentials *volume.Credentials
	// ReadOnly says that the storage can't be written, so that only read-shared will do. A claim is refused for the other
	// modes already; of a direct source it is for the caller to compare.
	ReadOnly bool
	// DiskImage says that the image is the disk.img of a Filesystem volume, 1:1 with the virtual disk. It may be missing
	// while nobody has put one there; then the binding may make it, raw and of the claim's capacity.
	DiskImage bool
	// Warnings are whole sentences for the user.
	Warnings []string
}

// Version is that of the credentials; empty when there are none.
func (r Resolved) Version() string {
	if r.Credentials == nil {
		return ""
	}
	return r.Credentials.Version
}

// NotReady is the error of a source that may still come to be what is needed: a claim that is missing or not bound, a
// secret that is not there. A plan can leave the volume open for it.
type NotReady struct{ Err error }

func (e *NotReady) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *NotReady) Unwrap() error { return e.Err }

// Error is the error of a source that is wrong for good, until somebody changes it. Errors of this package and its
// subpackages that are neither an Error nor a NotReady come from a system that could not be asked.
type Error struct {
	// Attribute is the attribute to blame, below the source's own block; empty when it is none of them.
	Attribute string
	Err       error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// NotReadyf formats a NotReady as fmt.Errorf does.
func NotReadyf(format string, args ...any) error {
	return &NotReady{Err: fmt.Errorf(format, args...)}
}

// Errorf formats an Error that blames attribute, as fmt.Errorf does.
func Errorf(attribute, format string, args ...any) error {
	return &Error{Attribute: attribute, Err: fmt.Errorf(format, args...)}
}
