package host

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// endTime is what a program gets to end once its connection has: then it is killed.
	endTime = 2 * time.Second
	// lastWordsTime is how long a program that has hung up is waited for, to hear why.
	lastWordsTime = time.Second
	// lastLines is how many lines of that are told.
	lastLines = 4
)

// tunnel is a connection through a program: what is written goes to its standard input, what is read is its standard
// output. Its errors tell what the program complained of.
type tunnel struct {
	cmd  *exec.Cmd
	in   *os.File
	out  *os.File
	said tail
	to   tunnelAddr

	closing sync.Once
	ended   chan struct{}
}

// startTunnel starts the program, which connects to a host.
func startTunnel(cmd *exec.Cmd, host string) (*tunnel, error) {
	t := &tunnel{cmd: cmd, to: tunnelAddr{filepath.Base(cmd.Path), host}, ended: make(chan struct{})}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), in.Close())
	}
	t.in, t.out = in, out
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, &t.said
	// A connection that ssh shares (ControlPersist) holds on to its standard error.
	cmd.WaitDelay = lastWordsTime / 2
	detach(cmd)
	err = cmd.Start()
	_, _ = theirIn.Close(), theirOut.Close()
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, err
	}
	go func() {
		defer close(t.ended)
		_ = cmd.Wait() // what it said tells more than its exit status
	}()
	return t, nil
}

// Read is net.Conn's.
func (t *tunnel) Read(p []byte) (int, error) {
	n, err := t.out.Read(p)
	return n, t.failed("read", err)
}

// Write is net.Conn's.
func (t *tunnel) Write(p []byte) (int, error) {
	n, err := t.in.Write(p)
	return n, t.failed("write", err)
}

// failed is an error as connections have it, with what the program said.
func (t *tunnel) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	if !errors.Is(err, os.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
		if complaint := t.complaint(); complaint != nil {
			err = complaint
		}
	}
	return &net.OpError{Op: op, Net: t.to.Network(), Addr: t.to, Err: err}
}

// complaint is why the program has ended; nil while it runs, and when it said nothing.
func (t *tunnel) complaint() error {
	late := time.NewTimer(lastWordsTime)
	defer late.Stop()
	select {
	case <-t.ended:
	case <-late.C:
	}
	if said := t.said.String(); said != "" {
		return errors.New(said)
	}
	return nil
}

// Close ends the connection, and so the program: at the end of its input, or soon after by force.
func (t *tunnel) Close() error {
	t.closing.Do(func() {
		// In this order: a reader is to hear that the connection was closed, and not of the program's end.
		_, _ = t.out.Close(), t.in.Close()
		go func() {
			late := time.NewTimer(endTime)
			defer late.Stop()
			select {
			case <-t.ended:
			case <-late.C:
				_ = t.cmd.Process.Kill()
			}
		}()
	})
	return nil
}

// LocalAddr is net.Conn's.
func (t *tunnel) LocalAddr() net.Addr { return tunnelAddr{t.to.program, "localhost"} }

// RemoteAddr is net.Conn's.
func (t *tunnel) RemoteAddr() net.Addr { return t.to }

// SetDeadline is net.Conn's.
func (t *tunnel) SetDeadline(at time.Time) error {
	return errors.Join(t.SetReadDeadline(at), t.SetWriteDeadline(at))
}

// SetReadDeadline is net.Conn's.
func (t *tunnel) SetReadDeadline(at time.Time) error { return t.out.SetReadDeadline(at) }

// SetWriteDeadline is net.Conn's.
func (t *tunnel) SetWriteDeadline(at time.Time) error { return t.in.SetWriteDeadline(at) }

// tunnelAddr is an end of a tunnel.
type tunnelAddr struct{ program, host string }

// Network is the program that leads there.
func (a tunnelAddr) Network() string { return a.program }

func (a tunnelAddr) String() string { return a.host }

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// tailSize is in bytes.
const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-tailSize):]
	return len(p), nil
}

// String is the last lines in one.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range strings.Lines(string(t.text)) {
		if line = strings.TrimRight(strings.TrimSpace(line), "."); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-lastLines):], "; ")
}

var (
	_ net.Conn  = (*tunnel)(nil)
	_ io.Writer = (*tail)(nil)
)
