//go:build unix

package host

import (
	"os/exec"
	"syscall"
)

// detach keeps the terminal's Ctrl-C from a program: Terraform stops in order then, and needs its connections for that.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
