//go:build acc

package lab

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// killMe is the environment variable that marks this test's program as the process to be killed.
const killMe = "VIRTCLAIM_LAB_TEST_KILL_ME"

// startToBeKilled starts a lab, prints its folder, and does not end.
func startToBeKilled() {
	l, err := Start(context.Background(), Options{})
	if err == nil {
		err = startServers(context.Background(), l)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(l.Dir)
	select {}
}

// startAndKill has another process start a lab, kills it with SIGKILL, and returns the lab's folder.
func startAndKill(t *testing.T) (dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), killMe+"=yes")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	dir = lines.Text()
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("no lab but %s: %v", dir, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	return dir
}

// inUse reports whether a process has a lab's folder open.
func inUse(t *testing.T, dir string) bool {
	t.Helper()
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }()
	return lock(folder, syscall.LOCK_EX) != nil
}

// await waits at most a minute, because guests boot slowly on a busy machine.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	deadline := time.After(Patience(time.Minute))
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("it never happened that %s", what)
		}
	}
}
