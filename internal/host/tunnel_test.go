package host

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// through returns a tunnel through a script.
func through(t *testing.T, script string) *tunnel {
	t.Helper()
	conn, err := connectSSH(t.Context(), asSSH(t, script))
	if err != nil {
		t.Fatal(err)
	}
	tunnel := conn.(*tunnel)
	t.Cleanup(func() {
		_ = tunnel.Close()
		<-tunnel.ended
	})
	return tunnel
}

func TestTunnel_IsAConnection(t *testing.T) {
	c := through(t, "exec cat")
	answer := make([]byte, 4)
	if _, err := c.Write([]byte("\x00ing")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "\x00ing" {
		t.Errorf("got %q, %v", answer, err)
	}
	if err := c.SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(answer); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if c.RemoteAddr().String() != "node-a" || c.RemoteAddr().Network() != "ssh" || c.LocalAddr().String() != "localhost" {
		t.Errorf("it leads from %s to %s", c.LocalAddr(), c.RemoteAddr())
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	read := make(chan error)
	go func() {
		_, err := c.Read(answer)
		read <- err
	}()
	_ = c.Close()
	if err := <-read; !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
	<-c.ended
	if _, err := c.Write(answer); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// If the peer has disappeared without closing the connection, ssh does not end by itself.
func TestTunnel_KillsProgram(t *testing.T) {
	c := through(t, "trap '' TERM HUP; exec sleep 60")
	_ = c.Close()
	<-c.ended
	if status := c.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", c.cmd.ProcessState)
	}
}

// Ctrl-C is sent to all programs of the terminal, and Terraform still needs its connections then.
func TestTunnel_OwnProcessGroup(t *testing.T) {
	c := through(t, "exec cat")
	group, err := syscall.Getpgid(c.cmd.Process.Pid)
	if own := syscall.Getpgrp(); err != nil || group == own {
		t.Errorf("got %d as ours, %v", group, err)
	}
}

func TestTunnel_EndTellsReason(t *testing.T) {
	c := through(t, `read -r line; echo "Connection to node-a closed by remote host." >&2; exit 255`)
	if _, err := c.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	_, err := c.Read(make([]byte, 1))
	var network *net.OpError
	if !errors.As(err, &network) || !strings.Contains(err.Error(), "read ssh node-a: Connection to node-a closed by remote host") {
		t.Errorf("got %v", err)
	}
}
