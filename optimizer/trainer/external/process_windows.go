package external

import (
	"cmp"
	"os/exec"
	"syscall"
)

// shellLine passes a line on to the system's shell as it is: cmd reads quotes by rules of its own.
// With /s it takes off the outer ones alone.
func shellLine(a *syscall.SysProcAttr, args []string) *syscall.SysProcAttr {
	if len(args) == 3 && args[0] == "cmd" {
		a = cmp.Or(a, &syscall.SysProcAttr{})
		a.CmdLine = `cmd /s /c "` + args[2] + `"`
	}
	return a
}

// notFound is the exit code of cmd where it does not know a command.
const notFound = 9009

// meaning is what the end of a process tells its user.
func meaning(exit *exec.ExitError) string {
	if exit != nil && exit.ExitCode() == notFound {
		return "the command was not found: check its spelling and PATH; torch, hf, jax, mlx and idle come with atoll and need python"
	}
	return ""
}
