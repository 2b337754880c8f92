package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is a Kubernetes API server with the controllers of persistent volumes.
type Cluster struct {
	// Kubeconfig is the path of the clients' file, whose user has all rights.
	Kubeconfig string
	Client     kubernetes.Interface

	program, dir, port string
	lab                *os.File
	lifeline           io.Closer
	ended              chan struct{}
}

// startCluster starts the control plane with its data in dir, and waits until it can be used.
func startCluster(ctx context.Context, lab *os.File, dir, program string) (*Cluster, error) {
	c := &Cluster{Kubeconfig: filepath.Join(dir, "kubeconfig"), program: program, dir: dir, lab: lab}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	address, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	if _, c.port, err = net.SplitHostPort(address); err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return c, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return c, fmt.Errorf("read the lab's kubeconfig: %w", err)
	}
	config.QPS = -1
	c.Client, err = kubernetes.NewForConfig(config)
	return c, err
}

// startAttempts is the number of starts of an API server that ends immediately: while it was stopped another program may temporarily have
// used its port.
const startAttempts = 3

// Start starts the API server, the first time or after Stop, on the same port and data, and waits until it can be used.
func (c *Cluster) Start(ctx context.Context) (err error) {
	for range startAttempts {
		if err = c.start(ctx); !errors.Is(err, errEnded) {
			return err
		}
	}
	return err
}

func (c *Cluster) start(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), c.program, "-dir", c.dir, "-port", c.port)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is handled by this process, which stops everything in order
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{c.lab} // the folder is in use as long as the control plane lives
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if c.lifeline, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the Kubernetes API server: %w", err)
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	c.ended = ended
	go func() {
		defer close(ended)
		watchOutput(stdout, ready)
		_ = cmd.Wait() // its log has the reason
	}()
	return c.await(ctx, ready)
}

// watchOutput closes ready when the control plane reports that it is ready, and keeps reading until its end.
func watchOutput(stdout io.Reader, ready chan<- struct{}) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if lines.Text() == "READY" {
			close(ready)
			break
		}
	}
	_, _ = io.Copy(io.Discard, stdout)
}

var errEnded = errors.New("it ended at once")

func (c *Cluster) await(ctx context.Context, ready <-chan struct{}) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTime, fmt.Errorf("it is not ready after %s", readyTime))
	defer cancel()
	var err error
	select {
	case <-ready:
		return nil
	case <-c.ended:
		err = errEnded
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return fmt.Errorf("start the Kubernetes API server: %w\n%s", err, lastWords(filepath.Join(c.dir, "log")))
}

// Stop ends the API server. Its data stays.
func (c *Cluster) Stop(ctx context.Context) error {
	if c == nil || c.ended == nil {
		return nil
	}
	_ = c.lifeline.Close() // it may be closed already
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the Kubernetes API server: %w", context.Cause(ctx))
	}
}

// lastWords is the end of a log.
func lastWords(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-2000):]))
}
