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
	"sync/atomic"
	"time"
)

const (
	// endTime is how long a program may take to end after its connection: then it is killed.
	endTime = 2 * time.Second
	// lastWordsTime is how long the end of a program that has closed the connection is waited for, to report its error.
	lastWordsTime = time.Second
	// lastLines is how many lines of its standard error are reported.
	lastLines = 4
)

// tunnel is a connection through a program's standard input and output. Its errors include the program's standard error.
type tunnel struct {
	cmd  *exec.Cmd
	in   *os.File
	out  *os.File
	said tail
	to   tunnelAddr
	// begun is whether something was read, and noise what the host's shell printed before libvirt's answer.
	begun atomic.Bool
	noise atomic.Pointer[noiseError]

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
	// A shared connection of ssh (ControlPersist) keeps standard error open.
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
		_ = cmd.Wait() // standard error tells more than the exit status
	}()
	return t, nil
}

// Read implements net.Conn.
func (t *tunnel) Read(p []byte) (int, error) {
	n, err := t.out.Read(p)
	if n > 0 && !t.begun.Swap(true) && p[0] > longestLength {
		t.noise.Store(t.readNoise(p[:n]))
		n, err = 0, io.ErrUnexpectedEOF
	}
	return n, t.failed("read", err)
}

// Write implements net.Conn.
func (t *tunnel) Write(p []byte) (int, error) {
	n, err := t.in.Write(p)
	return n, t.failed("write", err)
}

// failed adds the program's standard error to the error of the connection.
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

// complaint is the program's standard error after its end; nil while it runs, and if it wrote nothing.
func (t *tunnel) complaint() error {
	if noise := t.noise.Load(); noise != nil {
		return noise
	}
	late := time.NewTimer(lastWordsTime)
	defer late.Stop()
	select {
	case <-t.ended:
	case <-late.C:
	}
	said := t.said.String()
	switch {
	case said == "":
		return nil
	case !t.begun.Load() && refusedStartup.MatchString(said):
		return &startupError{said}
	}
	return errors.New(said)
}

// Close closes the connection. The program ends with its input, or is killed soon after.
func (t *tunnel) Close() error {
	t.closing.Do(func() {
		// In this order: a reader must get the error of a closed connection, not that of the program's end.
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

// LocalAddr implements net.Conn.
func (t *tunnel) LocalAddr() net.Addr { return tunnelAddr{t.to.program, "localhost"} }

// RemoteAddr implements net.Conn.
func (t *tunnel) RemoteAddr() net.Addr { return t.to }

// SetDeadline implements net.Conn.
func (t *tunnel) SetDeadline(at time.Time) error {
	return errors.Join(t.SetReadDeadline(at), t.SetWriteDeadline(at))
}

// SetReadDeadline implements net.Conn.
func (t *tunnel) SetReadDeadline(at time.Time) error { return t.out.SetReadDeadline(at) }

// SetWriteDeadline implements net.Conn.
func (t *tunnel) SetWriteDeadline(at time.Time) error { return t.in.SetWriteDeadline(at) }

// tunnelAddr is the address of a tunnel.
type tunnelAddr struct{ program, host string }

// Network is the name of the program.
func (a tunnelAddr) Network() string { return a.program }

func (a tunnelAddr) String() string { return a.host }

// tail keeps the last bytes that are written to it.
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

// String returns the last lines in one line.
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
