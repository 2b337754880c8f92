//go:build linux

// Command init is process 1 of a machine whose root disk is the root file system of a container image. It stays in the initial RAM disk,
// so that it can unmount the root file system at the end, and runs the image's program in a mount namespace of its own.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
)

// A machine is what process 1 knows about where it runs.
type machine struct {
	config  guestinit.Config
	root    string // device of the root disk; empty until it is found
	mounted []string

	output   output
	stop     <-chan os.Signal
	children <-chan os.Signal
}

func main() {
	if os.Args[0] == childName {
		becomeProgram(context.Background())
		return
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "init: this is the first program of a virtual machine, and nothing else")
		os.Exit(1)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &machine{}
	status := m.live(ctx)
	cancel()
	m.end(status)
}

// live does all between power on and power off. A kernel whose process 1 ends panics, so even a mistake of this program becomes a status.
func (m *machine) live(ctx context.Context) (status guestinit.Status) {
	defer func() {
		if mistake := recover(); mistake != nil {
			say("%s", debug.Stack())
			status = guestinit.Status{State: guestinit.Failed, Message: fmt.Sprintf("a mistake in init: %v", mistake)}
		}
		if status.State == guestinit.Failed {
			say("%s", status.Message)
		}
	}()
	code, stopped, err := m.bootAndRun(ctx)
	if err != nil {
		return guestinit.Status{State: guestinit.Failed, Message: err.Error()}
	}
	return guestinit.Status{State: guestinit.Exited, ExitCode: code, Ended: !stopped}
}

func (m *machine) bootAndRun(ctx context.Context) (code int, stopped bool, err error) {
	if err := mountInitial(); err != nil {
		return 0, false, err
	}
	openConsole()
	m.listen()
	loadModules(moduleList)
	awaitRandomness()
	setClock()
	config, err := readConfig()
	if err != nil {
		// Then the root disk is known by its place only, and the first one is not necessarily ours: no status.
		return 0, false, err
	}
	m.config = config
	m.watchPowerButton()
	if err := m.mountAll(ctx); err != nil {
		return 0, false, err
	}
	m.configureNetwork(ctx)
	if !config.TTY {
		if err := m.output.begin(config.Timestamps); err != nil {
			return 0, false, fmt.Errorf("output of the program: %w", err)
		}
	}
	return m.runProgram(ctx)
}

// end stops what still runs and powers off. Each step is tried, whatever became of the one before.
func (m *machine) end(status guestinit.Status) {
	m.killAll()
	m.unmountAll()
	status.Output = m.output.end()
	if err := writeStatus(m.root, status); err != nil {
		say("%v", err)
	}
	unix.Sync()
	drainConsole()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		say("power off: %v", err)
	}
	select {}
}
