//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
)

const (
	// childName is the name by which init starts itself, to become the program.
	childName = "virtclaim-program"
	// failureFile is where the child writes why it could not become the program. It closes when it has.
	failureFile = 3
)

// becomeProgram replaces this process, which has a mount namespace of its own, by the program.
func becomeProgram(ctx context.Context) {
	unix.CloseOnExec(failureFile)
	err := enterAndExecute(ctx)
	failure := os.NewFile(failureFile, "failure")
	_, _ = io.WriteString(failure, err.Error())
	os.Exit(1)
}

func enterAndExecute(ctx context.Context) error {
	config, err := readConfig()
	if err != nil {
		return err
	}
	if err := addSecrets(ctx, &config); err != nil {
		return err
	}
	if err := enterRoot(); err != nil {
		return fmt.Errorf("enter the root file system: %w", err)
	}
	user, err := findAccount(config.User, readOptional("/etc/passwd"), readOptional("/etc/group"))
	if err != nil {
		return err
	}
	folder := config.WorkingDirectory
	if folder == "" {
		folder = "/"
	}
	if err := enterFolder(folder, user); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	path, err := lookUp(config.Arguments[0], pathOf(config.Environment), folder)
	if err != nil {
		return fmt.Errorf("entrypoint %q: %w", config.Arguments[0], err)
	}
	say("starting %q as %d:%d", config.Arguments[0], user.uid, user.gid)
	return execute(path, config, user)
}

// addSecrets adds the variables of disks, which only the program's own process knows.
func addSecrets(ctx context.Context, config *guestinit.Config) error {
	all := map[string]string{}
	maps.Copy(all, config.Environment)
	for _, serial := range config.EnvironmentDisks {
		variables, err := readEnvironment(ctx, serial)
		if err != nil {
			return fmt.Errorf("environment of the disk %q: %w", serial, err)
		}
		maps.Copy(all, variables)
	}
	config.Environment = all
	return nil
}

func readEnvironment(ctx context.Context, serial string) (map[string]string, error) {
	device, err := awaitDisk(ctx, serial)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(device)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	content, err := io.ReadAll(io.LimitReader(file, guestinit.MaxEnvironment+1))
	if err != nil {
		return nil, err
	}
	return guestinit.DecodeEnvironment(content)
}

// enterRoot makes the root file system this process's root, with all that is mounted in it.
func enterRoot() error {
	if err := unix.Chdir(sysroot); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return err
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	return unix.Chdir("/")
}

// enterFolder makes what is missing of the working directory the user's.
func enterFolder(folder string, user account) error {
	_, missing := os.Stat(folder)
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // as container runtimes make it
		return err
	}
	if missing != nil {
		if err := os.Chown(folder, user.uid, user.gid); err != nil {
			return err
		}
	}
	return os.Chdir(folder)
}

func execute(path string, config guestinit.Config, user account) error {
	// As systemd has it: select() breaks with more, and a server raises its limit itself.
	const openFiles, mostOpenFiles = 1024, 524288
	if err := syscall.Setrlimit(unix.RLIMIT_NOFILE, &syscall.Rlimit{Cur: openFiles, Max: mostOpenFiles}); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	// A program opens /dev/stdout again, also when it has given up its user.
	_, _ = unix.Fchown(1, user.uid, user.gid), unix.Fchmod(1, 0o622)
	if err := syscall.Setgroups(user.groups); err != nil {
		return fmt.Errorf("set the groups %v: %w", user.groups, err)
	}
	if err := syscall.Setgid(user.gid); err != nil {
		return fmt.Errorf("set the group %d: %w", user.gid, err)
	}
	if err := syscall.Setuid(user.uid); err != nil {
		return fmt.Errorf("set the user %d: %w", user.uid, err)
	}
	err := syscall.Exec(path, config.Arguments, environment(config.Environment, user.home, config.Hostname))
	return fmt.Errorf("entrypoint %q: %w", config.Arguments[0], explainRefusal(path, err))
}

// readOptional reads a file that an image need not have. A FIFO in its place would never end.
func readOptional(path string) string {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer file.Close() //nolint:errcheck // it was only read
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text, _ := io.ReadAll(file)
	return string(text)
}
