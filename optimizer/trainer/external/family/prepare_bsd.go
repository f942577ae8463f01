//go:build unix && !linux

package family

import (
	"os/exec"
	"syscall"
)

// Prepare gives a command a family of its own, which a Ctrl-C in the terminal does not reach.
// This system cannot end it with its parent: kill it on every way out.
func Prepare(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
