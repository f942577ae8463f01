//go:build !linux

package testnet

import (
	"errors"
	"syscall"
)

// childAttributes give a node a process group of its own, so that the
// terminal's interrupt reaches it only by way of the testnet. Here the system
// has no way to let it die with this process: Run kills it on every way out.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// relatives needs what only Linux shows: the environment of processes.
func relatives(string) ([]relative, error) {
	return nil, errors.New("kill learner needs Linux, where the processes of a learner can be found")
}
