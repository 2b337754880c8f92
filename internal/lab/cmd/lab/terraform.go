package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

// interruptTime is the time that Terraform has to finish after Ctrl-C.
const interruptTime = 30 * time.Second

// findTerraform returns the path of terraform, or else of tofu.
func findTerraform() (string, error) {
	root, err := lab.Root()
	if err != nil {
		return "", err
	}
	for _, program := range []string{"terraform", "tofu", filepath.Join(root, ".lab", "bin", "tofu")} {
		if path, err := exec.LookPath(program); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither terraform nor tofu is on the PATH, and .lab/bin has none: run make setup")
}

// terraform runs one configuration.
type terraform struct {
	program, dir string
	env          []string
}

// newTerraform drops the environment variables that are meant for other configurations.
func newTerraform(program, dir string, variables map[string]string) terraform {
	t := terraform{program: program, dir: dir}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "TF_") || strings.HasPrefix(e, "TF_LOG") {
			t.env = append(t.env, e)
		}
	}
	for name, value := range variables {
		t.env = append(t.env, name+"="+value)
	}
	t.env = append(t.env, "TF_IN_AUTOMATION=1", "TF_INPUT=0", "TF_CLI_ARGS=-no-color", "CHECKPOINT_DISABLE=1")
	return t
}

// run prints the lines of progress. Its error has the whole output.
func (t terraform) run(ctx context.Context, args ...string) error {
	say("%s %s", filepath.Base(t.program), strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, t.program, args...)
	cmd.Dir, cmd.Env = t.dir, t.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it is interrupted once, by this process
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptTime
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	shown := make(chan []byte)
	go func() { shown <- showProgress(reader) }()
	err := cmd.Run()
	_ = writer.Close()
	all := <-shown
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(t.program), strings.Join(args, " "), err, all)
	}
	return nil
}

// progress matches the lines of progress; other lines explain how to use Terraform.
var progress = regexp.MustCompile(`: (Creat|Destr)\w+( complete|\.\.\.)|^(Plan: |No changes|Apply complete|Destroy complete)`)

// showProgress prints the lines of progress, and returns all lines.
func showProgress(output io.Reader) []byte {
	var all bytes.Buffer
	lines := bufio.NewReader(io.TeeReader(output, &all))
	for {
		line, err := lines.ReadString('\n')
		if progress.MatchString(line) {
			fmt.Println("    " + strings.TrimSpace(line))
		}
		if err != nil {
			return all.Bytes()
		}
	}
}
