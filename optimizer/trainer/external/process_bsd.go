//go:build unix && !linux

package external

import (
	"os/exec"
	"syscall"
)

// alone gives a command a process group of its own, which a Ctrl-C in the terminal does not
// reach. Its client ends when its parent does.
func alone(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
