// Command controlplane is a Kubernetes control plane in one process, for tests
// and demonstrations: etcd, the real kube-apiserver, the binder of persistent
// volumes and the controllers that protect volumes and claims in use.
//
// It listens on loopback only, keeps everything in one folder, and can be
// started again on that folder and port: credentials and objects survive. It
// stops on SIGTERM, SIGINT and at the end of its standard input, so that it
// ends together with the process that holds the other end of that pipe.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// stopTimeout limits the drain of open requests, which takes a second. Written
// data is in the page cache by then, and survives the process.
const stopTimeout = 1500 * time.Millisecond

func main() {
	dir := flag.String("dir", "", "state `folder`, created if missing")
	port := flag.Int("port", 0, "TCP `port` of the API server on 127.0.0.1")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()

	if err := run(ctx, *dir, *port); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. The end of ctx is no error, at any stage of the
// start.
func run(ctx context.Context, dir string, port int) error {
	if dir == "" || port <= 0 {
		return errors.New("both -dir and -port are needed")
	}
	if err := enter(dir); err != nil {
		return err
	}
	creds, err := loadCredentials(".")
	if err != nil {
		return err
	}
	etcd, err := startEtcd(ctx)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer etcd.Close()

	ended := make(chan error, 1)
	go func() { ended <- serveAPI(ctx, creds, port) }()
	if err := serve(ctx, creds, port, ended); err != nil {
		return unlessStopped(ctx, err)
	}
	select {
	case <-ended:
	case <-time.After(stopTimeout):
	}
	return nil
}

// serve starts the parts that need a ready API server, reports that to the
// starter, and waits for the end of ctx. The API server's own end is an error.
func serve(ctx context.Context, creds credentials, port int, ended <-chan error) error {
	client, err := newAdminClient(creds, port)
	if err != nil {
		return err
	}
	if err := waitReady(ctx, client, ended); err != nil {
		return err
	}
	if err := startControllers(ctx, client); err != nil {
		return err
	}
	if err := writeKubeconfig("kubeconfig", creds, port); err != nil {
		return err
	}
	fmt.Println("READY")
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return fmt.Errorf("the API server ended by itself: %w", err)
	}
}

// enter creates dir and changes into it: the paths of etcd's sockets stay
// relative, whatever the length of dir (the kernel allows 107 bytes).
func enter(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the state folder: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("close the state folder to other users: %w", err)
	}
	if err := os.Chdir(filepath.Clean(dir)); err != nil {
		return fmt.Errorf("enter the state folder: %w", err)
	}
	return nil
}

func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
