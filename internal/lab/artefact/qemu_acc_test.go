//go:build acc

package artefact

import (
	"bufio"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// virtualMachine is a guest in its own QEMU.
type virtualMachine struct {
	lines   chan string // the output of the serial port
	serial  io.Writer
	monitor net.Conn
	ended   chan error
}

// boot starts the guest without acceleration, with parameters for its kernel
// and further arguments for QEMU.
func boot(t *testing.T, image Image, machine, parameters string, args ...string) *virtualMachine {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "monitor")
	cmd := exec.CommandContext(t.Context(), "qemu-system-x86_64", append([]string{
		"-machine", machine, "-accel", "tcg", "-m", "128", "-nodefaults", "-display", "none", "-no-reboot",
		"-serial", "stdio", "-monitor", "unix:" + socket + ",server=on,wait=on",
		"-kernel", image.Kernel, "-initrd", image.Initrd,
		"-append", strings.TrimSpace(image.Parameters + " " + parameters),
	}, args...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	vm := &virtualMachine{lines: make(chan string, 1000), serial: stdin, ended: make(chan error, 1)}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			vm.lines <- scanner.Text()
		}
		close(vm.lines)
		vm.ended <- cmd.Wait()
	}()
	vm.monitor = dial(t, socket)
	return vm
}

// dial waits for the socket: QEMU continues when a client has connected to it.
func dial(t *testing.T, socket string) net.Conn {
	t.Helper()
	for range 500 {
		if conn, err := new(net.Dialer).DialContext(t.Context(), "unix", socket); err == nil {
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("QEMU opened no monitor")
	return nil
}

// until returns the lines up to last, without it.
func (vm *virtualMachine) until(t *testing.T, last string) []string {
	t.Helper()
	deadline := time.After(30 * time.Second)
	var before []string
	for {
		select {
		case line, ok := <-vm.lines:
			if !ok {
				t.Fatalf("the guest ended before it said %q, after\n%s", last, strings.Join(before, "\n"))
			}
			if line == last {
				return before
			}
			before = append(before, line)
		case <-deadline:
			t.Fatalf("the guest did not say %q, only\n%s", last, strings.Join(before, "\n"))
		}
	}
}

// run has the guest's shell run a command, and returns its output.
func (vm *virtualMachine) run(t *testing.T, command string) []string {
	t.Helper()
	if _, err := io.WriteString(vm.serial, command+"\n"); err != nil {
		t.Fatal(err)
	}
	return vm.until(t, "RC=0")
}

func (vm *virtualMachine) pressPowerButton(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(vm.monitor, "system_powerdown\n"); err != nil {
		t.Fatal(err)
	}
}
