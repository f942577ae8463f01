//go:build !unix

package external

import "os/exec"

func alone(*exec.Cmd) {}

func killAll(cmd *exec.Cmd) { cmd.Process.Kill() }

func meaning(*exec.ExitError) string { return "" }
