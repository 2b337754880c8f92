package lab

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// closeTime is the time that a sandbox has to end by itself.
var closeTime = Patience(10 * time.Second)

//go:embed sandbox.sh
var sandboxScript string

// bind mounts a folder over a path of the machine. A missing path is created as long as a sandbox needs it.
type bind struct{ folder, over string }

// sandbox is a tree of processes with its own mounts, process ids and host name, as root. All of it ends with this process, however that
// ends: the first process of the tree reads commands from a pipe whose other end only this process has, and kills the tree at the pipe's
// end.
type sandbox struct {
	cmd      *exec.Cmd
	commands io.WriteCloser
	stderr   bytes.Buffer
	ended    chan struct{}

	mu      sync.Mutex
	last    int
	pending map[string]*command
}

// command runs in a sandbox; code and output are set once done is closed.
type command struct {
	done   chan struct{}
	code   int
	output string
	err    error
}

// startSandbox creates a sandbox whose files are in the folder home, which exists. It keeps the folder of the lab in use. Scripts start.sh
// and end.sh in home run before its first command and after its last.
func startSandbox(ctx context.Context, lab, name, home string, binds ...bind) (*sandbox, error) {
	return startSandboxWith(ctx, []string{"unshare", "--mount"}, lab, name, home, binds...)
}

// startSandboxWith has a command that makes the sandbox's mounts, and runs the next words as a command.
func startSandboxWith(ctx context.Context, mounts []string, lab, name, home string, binds ...bind) (*sandbox, error) {
	script := filepath.Join(home, "sandbox.sh")
	if err := os.WriteFile(script, []byte(sandboxScript), 0o600); err != nil {
		return nil, err
	}
	args := append(asRoot(), mounts...)
	args = append(args, "--pid", "--uts", "--fork", "--kill-child", "bash", script, lab, name, home)
	for _, b := range binds {
		if err := os.MkdirAll(b.folder, 0o700); err != nil {
			return nil, err
		}
		args = append(args, b.folder, b.over)
	}
	s := &sandbox{ended: make(chan struct{}), pending: map[string]*command{}}
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), args[0], args[1:]...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is handled by this process, which stops everything in order
	s.cmd.Stderr = &s.stderr
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the sandbox %s: %w", name, err)
	}
	s.commands = stdin
	go s.listen(bufio.NewReader(stdout))
	if err := s.run(ctx, "true"); err != nil {
		return nil, errors.Join(fmt.Errorf("start the sandbox %s: %w", name, err), s.close(ctx))
	}
	return s, nil
}

// asRoot is the prefix of a command that requires root.
func asRoot() []string {
	if os.Geteuid() == 0 {
		return nil
	}
	return []string{"sudo", "-n"}
}

// start runs a shell command and does not wait for it.
func (s *sandbox) start(text string) *command {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	id, c := strconv.Itoa(s.last), &command{done: make(chan struct{})}
	s.pending[id] = c
	if _, err := io.WriteString(s.commands, id+"\x00"+text+"\x00"); err != nil {
		delete(s.pending, id)
		c.err = fmt.Errorf("the sandbox has ended: %w", err)
		close(c.done)
	}
	return c
}

// run runs a shell command; its error has the end of the command's output. When ctx ends first the command keeps running, but not longer
// than the sandbox.
func (s *sandbox) run(ctx context.Context, text string) error {
	_, err := s.output(ctx, text)
	return err
}

// output is run for the command's output, as far as that fits into a response.
func (s *sandbox) output(ctx context.Context, text string) (string, error) {
	c := s.start(text)
	select {
	case <-c.done:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	switch {
	case c.err != nil:
		return "", c.err
	case c.code != 0:
		return "", fmt.Errorf("exit status %d: %s", c.code, c.output)
	}
	return c.output, nil
}

// listen passes responses to the waiting callers, until the sandbox ends.
func (s *sandbox) listen(answers *bufio.Reader) {
	defer close(s.ended)
	for {
		id, code, output, err := readAnswer(answers)
		if err != nil {
			break
		}
		s.mu.Lock()
		c := s.pending[id]
		delete(s.pending, id)
		s.mu.Unlock()
		c.code, c.output = code, output
		close(c.done)
	}
	_ = s.cmd.Wait() // what it printed is more useful than its exit status
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, c := range s.pending {
		delete(s.pending, id)
		c.err = fmt.Errorf("the sandbox has ended: %s", strings.TrimSpace(s.stderr.String()))
		close(c.done)
	}
}

func readAnswer(r *bufio.Reader) (id string, code int, output string, err error) {
	var parts [3]string
	for i := range parts {
		text, err := r.ReadString(0)
		if err != nil {
			return "", 0, "", err
		}
		parts[i] = strings.TrimSuffix(text, "\x00")
	}
	code, err = strconv.Atoi(parts[1])
	return parts[0], code, parts[2], err
}

// close ends everything in the sandbox and waits until it is gone.
func (s *sandbox) close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	_ = s.commands.Close() // it may be closed already
	timeout := time.NewTimer(closeTime)
	defer timeout.Stop()
	select {
	case <-s.ended:
		return nil
	case <-timeout.C:
	case <-ctx.Done():
	}
	if err := s.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("end a sandbox that does not end by itself: %w", err)
	}
	<-s.ended
	return nil
}

// quote quotes s as one word for the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
