// Command probe is the only program of the images of the tests: it says what it sees, or ends in some way.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
)

type report struct {
	UID, GID  int
	Groups    []int
	Variables []string
	Folder    string
	Hostname  string
	Files     map[string]string
	Addresses []string
	RootMiB   uint64
	Failures  []string
}

func main() {
	switch os.Args[1] {
	case "report":
		describe()
	case "exit":
		code, _ := strconv.Atoi(os.Args[2])
		os.Exit(code)
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "hangup":
		_, _ = syscall.Kill(1, syscall.SIGHUP), syscall.Kill(1, syscall.SIGQUIT)
	case "await":
		stopped := make(chan os.Signal, 1)
		signal.Notify(stopped, syscall.SIGUSR1)
		fmt.Println("probe is ready")
		<-stopped
		os.Exit(7)
	case "ignore":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("probe is ready")
		never := make(chan os.Signal, 1)
		signal.Notify(never, syscall.SIGUSR2) // a program that waits for nothing is ended by its runtime
		<-never
	case "flaky":
		flaky()
	}
}

// flaky fails twice and succeeds then. Each time it leaves a process behind that has its port.
func flaky() {
	leavePort()
	const file = "/runs"
	runs, _ := os.ReadFile(file)
	runs = append(runs, '.')
	if err := os.WriteFile(file, runs, 0o644); err != nil {
		panic(err)
	}
	if len(runs) < 3 {
		os.Exit(1)
	}
}

func leavePort() {
	listener, err := net.Listen("tcp", "127.0.0.1:80")
	if err != nil {
		panic(err)
	}
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		panic(err)
	}
	left := exec.Command("/probe", "ignore")
	left.ExtraFiles = []*os.File{file}
	if err := left.Start(); err != nil {
		panic(err)
	}
}

func describe() {
	r := report{UID: os.Getuid(), GID: os.Getgid(), Variables: os.Environ(), Files: map[string]string{}}
	note := func(err error) {
		if err != nil {
			r.Failures = append(r.Failures, err.Error())
		}
	}
	var err error
	r.Groups, err = os.Getgroups()
	note(err)
	r.Folder, err = os.Getwd()
	note(err)
	r.Hostname, err = os.Hostname()
	note(err)
	for _, name := range os.Args[2:] {
		text, err := os.ReadFile(name)
		note(err)
		r.Files[name] = string(text)
	}
	addresses, err := net.InterfaceAddrs()
	note(err)
	for _, address := range addresses {
		r.Addresses = append(r.Addresses, address.String())
	}
	// An unprivileged program opens these again, and listens on a port of a server.
	for _, name := range []string{"/dev/stdout", "/dev/stderr", "/dev/null"} {
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		note(err)
		_ = file.Close()
	}
	listener, err := net.Listen("tcp", ":80")
	note(err)
	if err == nil {
		_ = listener.Close()
	}
	if info, err := os.Stdout.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		terminal, err := os.Open("/dev/tty")
		note(err)
		_ = terminal.Close()
	}
	var root syscall.Statfs_t
	note(syscall.Statfs("/", &root))
	r.RootMiB = root.Blocks * uint64(root.Bsize) >> 20
	text, err := json.Marshal(r)
	note(err)
	fmt.Printf("REPORT%s\n", text)
}
