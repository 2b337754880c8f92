package lab

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Call is the number of a procedure in libvirt's protocol (src/remote/remote_protocol.x).
type Call uint32

// The calls that change a host, and those that read a volume and devices.
const (
	CallDomainCreate      Call = 9
	CallCreateXML         Call = 10
	CallResume            Call = 28
	CallSetAutostart      Call = 29
	CallSuspend           Call = 34
	CallPoolCreateXML     Call = 76
	CallPoolDefine        Call = 77
	CallPoolCreate        Call = 78
	CallPoolDestroy       Call = 80
	CallPoolDelete        Call = 81
	CallPoolUndefine      Call = 82
	CallVolumeCreate      Call = 93
	CallVolumeDelete      Call = 94
	CallSecretDefine      Call = 142
	CallSecretUndefine    Call = 146
	CallAttach            Call = 160
	CallDetach            Call = 161
	CallAbortJob          Call = 164
	CallUpdateDevice      Call = 174
	CallDomainCreateFlags Call = 196
	CallSetVCPUs          Call = 199
	CallSetMemory         Call = 204
	CallVolumeUpload      Call = 208
	CallVolumeDownload    Call = 209
	CallUndefine          Call = 231
	CallDestroy           Call = 234
	CallBlockJobAbort     Call = 237
	CallBlockPull         Call = 240
	CallBlockResize       Call = 251
	CallShutdown          Call = 258
	CallVolumeResize      Call = 260
	CallSetMetadata       Call = 264
	CallListNodeDevices   Call = 285
	CallMigrateBegin      Call = 302
	CallMigratePrepare    Call = 303
	CallMigratePerform    Call = 305
	CallMigrateFinish     Call = 306
	CallMigrateConfirm    Call = 307
	CallBlockCopy         Call = 345
	CallDefine            Call = 350
)

var callNames = map[Call]string{
	CallDomainCreate: "domain-create", CallVolumeCreate: "vol-create", CallVolumeDelete: "vol-delete", CallAttach: "attach",
	CallDetach: "detach", CallDomainCreateFlags: "domain-create-flags", CallUndefine: "undefine", CallDestroy: "destroy",
	CallBlockPull: "block-pull", CallBlockResize: "block-resize", CallVolumeResize: "vol-resize", CallSetMetadata: "set-metadata",
	CallDefine: "define", CallSecretDefine: "secret-define", CallCreateXML: "create-xml", CallVolumeUpload: "vol-upload",
	CallVolumeDownload: "vol-download", CallSetAutostart: "set-autostart", CallUpdateDevice: "update-device", CallSetVCPUs: "set-vcpus",
	CallSetMemory: "set-memory", CallShutdown: "shutdown", CallPoolCreateXML: "pool-create-xml", CallSecretUndefine: "secret-undefine",
	CallBlockJobAbort: "block-job-abort", CallBlockCopy: "block-copy",
	CallPoolDefine: "pool-define", CallPoolCreate: "pool-create", CallPoolDestroy: "pool-destroy", CallPoolDelete: "pool-delete",
	CallPoolUndefine: "pool-undefine", CallListNodeDevices: "list-node-devices", CallResume: "resume", CallSuspend: "suspend",
	CallAbortJob: "abort-job", CallMigrateBegin: "migrate-begin", CallMigratePrepare: "migrate-prepare",
	CallMigratePerform: "migrate-perform", CallMigrateFinish: "migrate-finish", CallMigrateConfirm: "migrate-confirm",
	1: "open", 2: "close", 7: "capabilities", 11: "define-xml", 14: "dumpxml", 15: "autostart", 23: "domain-by-name",
	79: "pool-build", 83: "pool-refresh", 84: "pool-by-name", 87: "pool-info",
	88: "pool-dumpxml", 95: "vol-by-name", 97: "vol-by-path", 98: "vol-info", 99: "vol-dumpxml", 103: "block-peek", 143: "secret-dumpxml",
	147: "secret-by-usage", 150: "is-active", 151: "is-persistent", 154: "pool-is-active", 183: "has-managed-save",
	194: "block-info", 212: "state", 238: "block-job", 273: "list-domains", 281: "list-pools", 282: "list-volumes", 316: "register-events",
	342: "domain-capabilities", 353: "addresses",
}

// String is like virsh's name of the procedure, or its number.
func (c Call) String() string { return cmp.Or(callNames[c], strconv.Itoa(int(c))) }

// callUnknown is a procedure that libvirt does not have: its reply is an error, and the connection stays open.
const callUnknown = 0x7fffffff

// Fault is a failure, and the time when it happens.
type Fault struct {
	// Call and Nth are the procedure and the number of the call, counted from 1.
	Call Call
	Nth  int
	// After forwards the call to libvirt, and drops its reply; otherwise libvirt never gets the call.
	After bool
	// AtByte is for CallVolumeUpload: the fault happens in the middle of the data. Once that many bytes, rounded up to whole packets, were
	// forwarded to libvirt, the upload's next packet is not, be it data, a hole or the end. How many of the bytes libvirt has written by
	// then is undefined. 0 means at the call itself; After has no meaning here.
	AtByte int64
	// Kill kills the client as kill -9 does; otherwise all its connections are cut.
	Kill bool
	// Refuse has libvirt reply to the call with an error instead, and all connections stay; After and Kill have no meaning here.
	Refuse bool
	// Hold delays the call, or with After its reply, until Tap.Release. Other calls of the connection pass meanwhile, and nothing fails.
	Hold bool
	// Slow is for CallBlockPull: libvirt copies at most 1 MiB in a second, until virsh blockjob sets another bandwidth. Nothing fails.
	Slow bool
}

// String names the fault in a test's output.
func (f Fault) String() string {
	what, when := "cut", "before"
	if f.Kill {
		what = "kill"
	}
	if f.After {
		when = "after"
	}
	if f.Hold {
		what = "hold"
	}
	if f.Slow {
		what = "slow"
	}
	if f.AtByte > 0 {
		when = fmt.Sprintf("at-%d", f.AtByte)
	}
	if f.Refuse {
		return fmt.Sprintf("refuse-%s-%d", f.Call, f.Nth)
	}
	return fmt.Sprintf("%s-%s-%s-%d", what, when, f.Call, f.Nth)
}

// isBefore reports whether a packet of a client must not reach libvirt, or what happens to it first. It changes a call that is to be
// refused to one that libvirt does not have.
func (t *Tap) isBefore(p *packet, c *tapped) (first withBody, hit bool) {
	if p.program() != remoteProgram {
		return nil, false
	}
	t.mu.Lock()
	f := t.fault
	switch p.kind() {
	case typeCall:
		if first, hit = t.isFaultyCall(p, c); first == nil && !hit {
			t.calls[p.call()]++
		}
	case typeStream, typeHole:
		hit = t.isFaultyData(*p, c)
	}
	t.mu.Unlock()
	if hit {
		t.strike(f, c.client)
	}
	return first, hit
}

// isFaultyCall reports whether a call must not pass, or what happens to it first, and otherwise records what is to happen later. t.mu is
// held.
func (t *Tap) isFaultyCall(p *packet, c *tapped) (first withBody, hit bool) {
	f := t.fault
	if f == nil || t.fired || p.call() != f.Call {
		return nil, false
	}
	if t.seen++; t.seen != f.Nth {
		return nil, false
	}
	later := &awaited{fault: f, serial: p.serial(), released: t.released}
	switch {
	case f.AtByte > 0:
		c.upload = &upload{fault: f, serial: p.serial()}
	case f.Refuse:
		t.fired, c.awaited = true, later
		p.setCall(callUnknown)
	case f.After && f.Hold:
		c.awaited = later // it fires when the reply has come
	case f.After:
		t.fired, c.awaited = true, later
	case f.Hold, f.Slow:
		t.fired = true
		return t.delayed(f, p.call()), false
	default:
		t.fired = true
		return nil, true
	}
	return nil, false
}

// delayed waits for Release, or slows a copy down, and counts the call that passes then. t.mu is held.
func (t *Tap) delayed(f *Fault, c Call) withBody {
	released := t.released
	return func(body []byte) {
		if f.Hold {
			<-released
		} else if at := len(body) - 12; at >= 0 { // before its flags the call has the bandwidth, in MiB/s
			binary.BigEndian.PutUint64(body[at:], 1)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.calls[c]++
	}
}

// isFaultyData reports whether a packet of an upload must not pass. t.mu is held.
func (t *Tap) isFaultyData(p packet, c *tapped) bool {
	if p.call() != CallVolumeUpload {
		return false
	}
	if u := c.upload; u != nil && u.serial == p.serial() {
		if u.fault == t.fault && !t.fired && u.passed >= u.fault.AtByte {
			t.fired = true
			return true
		}
		if p.kind() == typeStream {
			u.passed += p.length() - headerSize
		}
	}
	t.uploaded += p.length()
	return false
}

// isAfter reports whether a reply must not reach the client, or what happens to it first. It restores the procedure in the reply to a call
// that was changed.
func (t *Tap) isAfter(p *packet, c *tapped) (first withBody, hit bool) {
	t.mu.Lock()
	a := c.awaited
	t.received += p.length()
	t.mu.Unlock()
	if a == nil || p.program() != remoteProgram || p.kind() != typeReply || p.serial() != a.serial {
		return nil, false
	}
	switch {
	case a.fault.Refuse:
		p.setCall(a.fault.Call)
		return nil, false
	case a.fault.Hold:
		t.mu.Lock()
		t.fired = t.fired || t.fault == a.fault
		t.mu.Unlock()
		return func([]byte) { <-a.released }, false
	}
	t.strike(a.fault, c.client)
	return nil, true
}

// strike kills the client or cuts all connections.
func (t *Tap) strike(f *Fault, client *net.UnixConn) {
	if f.Kill {
		if pid, err := peer(client); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	t.cut()
}

// peer is the process at the other end of a unix socket.
func peer(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	controlErr := raw.Control(func(fd uintptr) {
		credentials, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, controlErr); err != nil {
		return 0, err
	}
	return int(credentials.Pid), nil
}
