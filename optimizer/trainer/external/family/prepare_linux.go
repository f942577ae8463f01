package family

import (
	"os/exec"
	"syscall"
)

// Prepare gives a command a family of its own, which a Ctrl-C in the terminal does not reach. Its
// first process ends with the thread that starts it.
func Prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
