package external

import (
	"os/exec"
	"syscall"
)

// alone gives a command a process group of its own, which a Ctrl-C in the terminal does not
// reach, and has it end with this process.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
