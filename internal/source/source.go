// Package source determines the storage of a volume. Its subpackages are the kinds of sources; this package has what they share: the
// result, the error types, names, addresses and credentials, and the description of storage for QEMU.
package source

import (
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Resolved is the result of resolving a source.
type Resolved struct {
	// Volume is incomplete: the binding adds the access mode and hosts of its images, and the secret UUID of their Auth.
	Volume volume.Volume
	// Credentials are those of the volume's Auth; nil if it needs none.
	Credentials *volume.Credentials
	// ReadOnly is whether the storage can't be written, so that only read-shared is possible. A claim refuses the other modes itself; for a
	// direct source the caller must check the mode.
	ReadOnly bool
	// DiskImage is whether the image is the disk.img of a Filesystem volume, 1:1 with the virtual disk. The file may be missing; then the
	// binding may create it, raw and with the claim's capacity.
	DiskImage bool
	// Device is what a device of the hosts must be, if the user has said where it is; otherwise nil.
	Device *Device
	// Warnings are complete sentences for the user.
	Warnings []string
}

// Version returns the version of the credentials; empty if there are none.
func (r Resolved) Version() string {
	if r.Credentials == nil {
		return ""
	}
	return r.Credentials.Version
}

// NotReady is the error of a source that may become ready: a claim that is missing or not bound, or a missing secret. A plan can leave the
// volume unknown for it.
type NotReady struct{ Err error }

func (e *NotReady) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *NotReady) Unwrap() error { return e.Err }

// Error is the error of a source that stays invalid until it is changed. Errors of this package and its subpackages that are neither an
// Error nor a NotReady mean that a system could not be queried.
type Error struct {
	// Attribute is the invalid attribute, relative to the source's own block; empty if it is none of them.
	Attribute string
	Err       error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// NotReadyf formats a NotReady as fmt.Errorf does.
func NotReadyf(format string, args ...any) error {
	return &NotReady{Err: fmt.Errorf(format, args...)}
}

// Errorf formats an Error of an attribute as fmt.Errorf does.
func Errorf(attribute, format string, args ...any) error {
	return &Error{Attribute: attribute, Err: fmt.Errorf(format, args...)}
}
