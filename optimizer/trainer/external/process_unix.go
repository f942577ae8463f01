//go:build unix

package external

import (
	"os/exec"
	"syscall"
)

// killAll ends the process group of a command.
func killAll(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// meaning is what the end of a process tells its user.
func meaning(exit *exec.ExitError) string {
	if exit == nil {
		return ""
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signaled() && status.Signal() == syscall.SIGKILL, exit.ExitCode() == 137:
		return "killed, most likely as memory ran out: use a smaller --batch"
	case exit.ExitCode() == 127:
		return "the command was not found: check --learner"
	}
	return ""
}
