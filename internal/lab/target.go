package lab

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// The iSCSI targets, by tgtd's number.
const (
	openTarget = 1
	chapTarget = 2
)

// Target is an iSCSI server with two targets, one of which requires CHAP credentials.
type Target struct {
	// Portal is host:port.
	Portal string
	// Username and Password are the CHAP credentials.
	Username, Password string

	dir     string
	sandbox *sandbox
	daemon  *daemon

	mu   sync.Mutex
	last int
	luns []LUN
}

// LUNSpec describes a LUN to create.
type LUNSpec struct {
	// Size is in bytes.
	Size int64
	// Content is the beginning of the LUN; the rest is zeros.
	Content []byte
	// CHAP selects the target that requires credentials.
	CHAP bool
}

// LUN is a disk that the Target serves.
type LUN struct {
	IQN    string
	Number int
	// Path is the backing file, which has the initiators' writes immediately.
	Path string
	// Size is in bytes.
	Size int64
	// CHAP is set if its target requires credentials.
	CHAP bool
}

// startTarget starts tgtd with its files in dir and creates the targets.
func startTarget(ctx context.Context, lab, dir string) (*Target, error) {
	t := &Target{dir: dir, Username: "lab", Password: rand.Text()[:16]}
	var err error
	if err := os.MkdirAll(filepath.Join(dir, "luns"), 0o700); err != nil {
		return nil, err
	}
	if t.Portal, err = freePort(ctx); err != nil {
		return nil, err
	}
	if t.sandbox, err = startSandbox(ctx, lab, "target", dir, bind{filepath.Join(dir, "run"), "/var/run/tgtd"}); err != nil {
		return nil, err
	}
	return t, t.Start(ctx)
}

// Start starts the server, the first time or after Stop, with the LUNs that it had.
func (t *Target) Start(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.daemon = startDaemon(t.sandbox, t.dir, "tgtd", "tgtd --foreground --iscsi portal="+t.Portal)
	err := t.daemon.await(ctx, func(ctx context.Context) error {
		return t.tgtadm(ctx, "--mode target --op show")
	})
	if err != nil {
		return fmt.Errorf("start the iSCSI server on %s: %w", t.Portal, err)
	}
	if err := t.makeTargets(ctx); err != nil {
		return err
	}
	for _, lun := range t.luns {
		if err := t.serve(ctx, lun); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends the server as a crash would, because it ignores SIGTERM. The initiators' writes are in the files.
func (t *Target) Stop(ctx context.Context) error { return t.daemon.end(ctx, "KILL") }

// Freeze stops the server from answering, until Thaw.
func (t *Target) Freeze(ctx context.Context) error { return t.daemon.send(ctx, "STOP") }

// Thaw reverts Freeze.
func (t *Target) Thaw(ctx context.Context) error { return t.daemon.send(ctx, "CONT") }

func (t *Target) makeTargets(ctx context.Context) error {
	for _, args := range []string{
		"--mode account --op new --user " + t.Username + " --password " + t.Password,
		targetArgs(openTarget, "target", "new") + " --targetname " + iqn(openTarget),
		targetArgs(openTarget, "target", "bind") + " --initiator-address ALL",
		targetArgs(chapTarget, "target", "new") + " --targetname " + iqn(chapTarget),
		targetArgs(chapTarget, "target", "bind") + " --initiator-address ALL",
		targetArgs(chapTarget, "account", "bind") + " --user " + t.Username,
	} {
		if err := t.tgtadm(ctx, args); err != nil {
			return err
		}
	}
	return nil
}

func targetArgs(number int, mode, op string) string {
	return fmt.Sprintf("--mode %s --op %s --tid %d", mode, op, number)
}

func iqn(number int) string {
	return "iqn.2025-01.io.virtclaim.lab:" + map[int]string{openTarget: "open", chapTarget: "chap"}[number]
}

// AddLUN creates a LUN with a sparse backing file.
func (t *Target) AddLUN(ctx context.Context, spec LUNSpec) (LUN, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	lun := LUN{
		Number: t.last, Size: spec.Size, CHAP: spec.CHAP, Path: filepath.Join(t.dir, "luns", fmt.Sprintf("%d.img", t.last)),
	}
	lun.IQN = iqn(lun.target())
	if err := makeImage(lun.Path, spec.Size, spec.Content); err != nil {
		return LUN{}, fmt.Errorf("make the backing file of a LUN: %w", err)
	}
	t.luns = append(t.luns, lun)
	return lun, t.serve(ctx, lun)
}

func (t *Target) serve(ctx context.Context, lun LUN) error {
	args := fmt.Sprintf(" --lun %d --backing-store %s", lun.Number, quote(lun.Path))
	return t.tgtadm(ctx, targetArgs(lun.target(), "logicalunit", "new")+args)
}

// target is tgtd's number of the LUN's target.
func (l LUN) target() int {
	if l.CHAP {
		return chapTarget
	}
	return openTarget
}

// URL is the URL of a LUN without CHAP for QEMU's tools.
func (t *Target) URL(lun LUN) string {
	return fmt.Sprintf("iscsi://%s/%s/%d", t.Portal, lun.IQN, lun.Number)
}

// RemoveLUN removes a LUN and its backing file.
func (t *Target) RemoveLUN(ctx context.Context, lun LUN) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.luns = slices.DeleteFunc(t.luns, func(l LUN) bool { return l.Number == lun.Number })
	if err := t.tgtadm(ctx, targetArgs(lun.target(), "logicalunit", "delete")+fmt.Sprintf(" --lun %d", lun.Number)); err != nil {
		return err
	}
	return os.Remove(lun.Path)
}

func (t *Target) tgtadm(ctx context.Context, args string) error {
	if err := t.sandbox.run(ctx, "tgtadm --lld iscsi "+args); err != nil {
		return fmt.Errorf("tgtadm %s: %w", strings.ReplaceAll(args, t.Password, "(password)"), err)
	}
	return nil
}

func (t *Target) close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.sandbox.close(ctx)
}

// freePort finds an address on loopback without a listener. Its port is outside of the kernel's range for outgoing connections, so that it
// stays free while a server restarts.
func freePort(ctx context.Context) (string, error) {
	var listen net.ListenConfig
	for range 100 {
		var random [2]byte
		_, _ = rand.Read(random[:]) // it never fails
		address := fmt.Sprintf("127.0.0.1:%d", 20000+(int(random[0])<<8|int(random[1]))%12000)
		listener, err := listen.Listen(ctx, "tcp", address)
		if err == nil {
			return address, listener.Close()
		}
	}
	return "", fmt.Errorf("no port between 20000 and 31999 is free on 127.0.0.1")
}
