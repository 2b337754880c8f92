package host

import (
	"os/exec"
	"syscall"
)

// detach keeps the terminal's Ctrl-C from a program: Terraform then stops gracefully, for which it needs its connections.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
