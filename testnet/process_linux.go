package testnet

import "syscall"

// childAttributes give a node a process group of its own, so that the
// terminal's interrupt reaches it only by way of the testnet, and let it die
// with this process, however that ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
