package host

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/digitalocean/go-libvirt"
)

// ErrNotFound is the error of an object that the host does not have. The error of a broken connection is never ErrNotFound.
var ErrNotFound = errors.New("not found")

// ErrNoPool is the error of a storage pool that the host does not have. The files of its volumes may exist nevertheless.
var ErrNoPool = errors.New("the host has no such storage pool: virsh pool-list --all lists those that it has; storage of the host in the " +
	"provider names the one of each usage type")

// errBroke is the error of an operation whose connection broke.
var errBroke = errors.New("the connection broke")

// ErrStillRunning is the error of a guest that did not shut down in time.
var ErrStillRunning = errors.New("the guest did not shut down in time")

// ErrExists is the error of creating a storage volume, or holding a domain, whose name exists.
var ErrExists = errors.New("it exists already")

// Error is a failed operation on a host.
type Error struct {
	// Host is the host's key, URI its address without a password.
	Host, URI string
	// Op is the operation, such as "start domain web".
	Op  string
	Err error
}

// Error indents all lines but the first: a storage server whose error QEMU repeats could otherwise forge further diagnostics.
func (e *Error) Error() string {
	cause := strings.ReplaceAll(strings.TrimSpace(e.Err.Error()), "\n", "\n    ")
	if unreachable(e.Err) && !errors.Is(e.Err, errBroke) { // what was to be done there has nothing to do with it
		return fmt.Sprintf("host %s (%s): %s. %s", e.Host, e.URI, strings.TrimSuffix(cause, "."), e.remedy())
	}
	return fmt.Sprintf("host %s (%s): %s: %s", e.Host, e.URI, e.Op, cause)
}

// Describe is the text of an error about an object on a host, which is named once.
func Describe(object, key string, err error) string {
	var e *Error
	if errors.As(err, &e) && e.Host == key {
		return fmt.Sprintf("%s: %s", object, err)
	}
	return fmt.Sprintf("%s on host %s: %s", object, key, err)
}

// remedy tells how to find out why a host can't be reached.
func (e *Error) remedy() string {
	virsh := "virsh -c " + ShellQuote(e.URI) + " list"
	uri, err := url.Parse(e.URI)
	switch {
	// elsewhere it is ssh itself, or a client's key, that can't be read
	case err == nil && uri.Host == "" && errors.Is(e.Err, fs.ErrPermission):
		return "Run Terraform as root, or as a member of the group libvirt (usermod -aG libvirt <user>, and log in again). Test: " + virsh
	case err == nil && strings.HasSuffix(uri.Scheme, "+ssh"):
		to := uri.Hostname()
		if name := uri.User.Username(); name != "" {
			to = name + "@" + to
		}
		if uri.Port() != "" {
			to = "-p " + uri.Port() + " " + to
		}
		return "Check that this works, and asks nothing: ssh -o BatchMode=yes " + to +
			" true. If it does, check that libvirtd runs there: " + virsh
	default:
		return "Check that libvirtd runs there, that the URI is right, and that you may connect: " + virsh
	}
}

func (e *Error) Unwrap() error { return e.Err }

// UnreachableError is the error of a host whose libvirt could not be reached.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("libvirt can't be reached: %s", e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// unreachable reports whether err is that of a host that does not answer.
func unreachable(err error) bool {
	var u *UnreachableError
	return errors.As(err, &u)
}

// notFound are libvirt's codes for an object that does not exist. That of a missing pool is none of them, because the files of its volumes
// may exist.
var notFound = map[libvirt.ErrorNumber]bool{
	libvirt.ErrNoDomain: true, libvirt.ErrNoSecret: true, libvirt.ErrNoStorageVol: true,
}

// typed wraps ErrNotFound, ErrExists and UnreachableError around errors by libvirt's code, never by the text.
func typed(err error) error {
	if isBroken(err) && !unreachable(err) {
		return &UnreachableError{fmt.Errorf("%w: %w", errBroke, err)}
	}
	var e libvirt.Error
	if errors.As(err, &e) && notFound[libvirt.ErrorNumber(e.Code)] {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if isCode(err, libvirt.ErrNoNetwork) {
		return fmt.Errorf("%w. virsh net-list --all lists the networks that the host has", err)
	}
	if isCode(err, libvirt.ErrStorageVolExist) {
		return fmt.Errorf("%w: %w", ErrExists, err)
	}
	return err
}

// failedElsewhere is the error of a prerequisite of op that is not on the host. It tells nothing about the host's objects.
func (h *Host) failedElsewhere(op string, err error) error {
	return &Error{Host: h.Key, URI: h.uri.Redacted(), Op: op, Err: err}
}

// isCode reports whether err is libvirt's error of that code.
func isCode(err error, code libvirt.ErrorNumber) bool {
	var e libvirt.Error
	return errors.As(err, &e) && libvirt.ErrorNumber(e.Code) == code
}
