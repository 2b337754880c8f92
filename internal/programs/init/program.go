//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
)

const (
	// killPatience is how long killed processes may take to end: one that waits for its storage may never.
	killPatience = 5 * time.Second
	endPatience  = 2 * time.Second
	// A program that a signal ends has this and the signal's number as exit code, as in shells.
	signalBase = 128
)

// listen collects signals from now on, so that none ends process 1 or gets lost.
func (m *machine) listen() {
	children, stop, others := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(others) // all: a script that has its server reload may send SIGHUP
	signal.Notify(children, unix.SIGCHLD)
	signal.Notify(stop, unix.SIGTERM, unix.SIGINT, unix.SIGPWR)
	m.children, m.stop = children, stop
	// Ctrl-Alt-Del is SIGINT then, instead of a reset.
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF)
}

// runProgram runs the program until it ends for good.
func (m *machine) runProgram(ctx context.Context) (code int, stopped bool, err error) {
	allowAsInContainers()
	var wait backoff
	for {
		started := time.Now()
		pid, err := startProgram()
		if err != nil {
			return 0, false, err
		}
		code, stopped = m.await(pid)
		say("exit %d", code)
		if stopped || !restarts(m.config.Restart, code) {
			return code, stopped, nil
		}
		m.killAll() // as in a container, where all end with the program: they may have its port or its lock
		if !m.pause(ctx, wait.next(time.Since(started))) {
			return code, true, nil
		}
	}
}

// allowAsInContainers has users other than root listen on all ports and ping, as container runtimes do: images are made for that.
func allowAsInContainers() {
	for file, value := range map[string]string{"ip_unprivileged_port_start": "0", "ping_group_range": "0 2147483647"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+file, []byte(value), 0o600); err != nil {
			say("%v", err)
		}
	}
}

// startProgram returns when the program has replaced the child, or the child has said why it can't.
func startProgram() (int, error) {
	failure, childs, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer failure.Close() //nolint:errcheck // it was only read
	pid, err := syscall.ForkExec("/proc/self/exe", []string{childName}, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: []uintptr{0, 1, 2, childs.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: isTerminal(0), Ctty: 0, Unshareflags: unix.CLONE_NEWNS},
	})
	_ = childs.Close()
	if err != nil {
		return 0, fmt.Errorf("start the program: %w", err)
	}
	message, err := io.ReadAll(failure)
	if err != nil {
		return 0, fmt.Errorf("start the program: %w", err)
	}
	if len(message) > 0 {
		return 0, errors.New(string(message))
	}
	return pid, nil
}

// await returns the program's exit code, and whether it was told to stop.
func (m *machine) await(pid int) (code int, stopped bool) {
	var late, hopeless <-chan time.Time
	stopping := m.stop
	for {
		select {
		case <-m.children:
			if code, ended := reap(pid); ended {
				return code, stopped
			}
		case <-stopping:
			stopped, stopping = true, nil
			late = time.After(m.config.StopPatience())
			number, _ := guestinit.ParseSignal(m.config.StopSignal) // was checked
			if err := unix.Kill(pid, unix.Signal(number)); err != nil {
				say("stop the program: %v", err)
			}
		case <-late:
			say("the program has not ended within %v: killing it", m.config.StopPatience())
			_ = unix.Kill(-1, unix.SIGKILL)
			hopeless = time.After(killPatience)
		case <-hopeless:
			say("the program has not ended although it was killed")
			return signalBase + int(unix.SIGKILL), stopped
		}
	}
}

// pause waits before a restart. False if the machine is stopped meanwhile.
func (m *machine) pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-m.children:
			reap(0)
		case <-timer.C:
			return true
		case <-m.stop:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// reap collects ended processes, also those whose parents ended before them, and returns the exit code of one of them.
func reap(wanted int) (code int, ended bool) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return code, ended
		}
		if pid == wanted {
			code, ended = exitCode(status), true
		}
	}
}

func exitCode(status unix.WaitStatus) int {
	if status.Signaled() {
		return signalBase + int(status.Signal())
	}
	return status.ExitStatus()
}

// killAll ends what the program has left.
func (m *machine) killAll() {
	for _, step := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := unix.Kill(-1, step); err != nil {
			return // there is none
		}
		if m.awaitNone(endPatience) {
			return
		}
	}
}

// awaitNone waits until process 1 has no children: all other processes are, or become, its own.
func (m *machine) awaitNone(limit time.Duration) bool {
	late := time.After(limit)
	for {
		reap(0)
		if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); errors.Is(err, unix.ECHILD) {
			return true
		}
		select {
		case <-m.children:
		case <-late:
			return false
		}
	}
}
