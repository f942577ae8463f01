//go:build unix

package external

import (
	"os/exec"
	"syscall"
)

// shellLine changes nothing: arguments reach a program here as they are.
func shellLine(a *syscall.SysProcAttr, _ []string) *syscall.SysProcAttr { return a }

// meaning is what the end of a process tells its user.
func meaning(exit *exec.ExitError) string {
	if exit == nil {
		return ""
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signaled() && status.Signal() == syscall.SIGKILL, exit.ExitCode() == 137:
		return "by somebody, or by the system as memory ran out: then use a smaller --batch"
	case exit.ExitCode() == 127:
		return "the command was not found: check its spelling and PATH; torch, hf, jax, mlx and idle come with atoll and need python3"
	}
	return ""
}
