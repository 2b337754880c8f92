package host

import (
	"errors"
	"fmt"
	"strings"

	"github.com/digitalocean/go-libvirt"
)

// ErrNotFound is the error of asking for something that the host does not have. A connection that broke is never it.
var ErrNotFound = errors.New("not found")

// ErrNoPool is the error of a storage pool that the host does not have. Its volumes may exist all the same.
var ErrNoPool = errors.New("there is no such storage pool")

// ErrStillRunning is the error of a guest that did not shut down in time.
var ErrStillRunning = errors.New("the guest did not shut down in time")

// ErrExists is the error of making a storage volume whose name is taken.
var ErrExists = errors.New("it exists already")

// Error tells which host failed at what.
type Error struct {
	// Host is the host's key, URI its address without a password.
	Host, URI string
	// Op is what was tried, such as "start domain web".
	Op  string
	Err error
}

// Error indents all lines but the first: a storage server whose error QEMU repeats could otherwise forge further diagnostics.
func (e *Error) Error() string {
	cause := strings.ReplaceAll(strings.TrimSpace(e.Err.Error()), "\n", "\n    ")
	return fmt.Sprintf("host %s (%s): %s: %s", e.Host, e.URI, e.Op, cause)
}

func (e *Error) Unwrap() error { return e.Err }

// UnreachableError is the error of a host whose libvirt could not be reached.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("libvirt does not answer: %s. Check that libvirtd runs there, that the URI is right, "+
		"and that you may connect: virsh -c <uri> list", e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// unreachable tells whether err is that of a host that does not answer.
func unreachable(err error) bool {
	var u *UnreachableError
	return errors.As(err, &u)
}

// notFound are libvirt's codes for an object that is not there. A missing pool is none of them: its volumes may exist.
var notFound = map[libvirt.ErrorNumber]bool{
	libvirt.ErrNoDomain: true, libvirt.ErrNoSecret: true, libvirt.ErrNoStorageVol: true,
}

// typed makes ErrNotFound and a broken connection recognisable, by libvirt's code and never by a text.
func typed(err error) error {
	if isBroken(err) && !unreachable(err) {
		return &UnreachableError{fmt.Errorf("the connection broke: %w", err)}
	}
	var e libvirt.Error
	if errors.As(err, &e) && notFound[libvirt.ErrorNumber(e.Code)] {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if isCode(err, libvirt.ErrStorageVolExist) {
		return fmt.Errorf("%w: %w", ErrExists, err)
	}
	return err
}

// failedElsewhere is the error of something that was needed for op and is not the host's: it says nothing of the host.
func (h *Host) failedElsewhere(op string, err error) error {
	return &Error{Host: h.Key, URI: h.uri.Redacted(), Op: op, Err: err}
}

// isCode tells whether err is libvirt's error of that code.
func isCode(err error, code libvirt.ErrorNumber) bool {
	var e libvirt.Error
	return errors.As(err, &e) && libvirt.ErrorNumber(e.Code) == code
}
