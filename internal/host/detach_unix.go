//go:build unix

package host

import (
	"os/exec"
	"syscall"
)

// detach keeps the terminal's Ctrl-C from a program: Terraform then stops gracefully, for which it needs its connections.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
