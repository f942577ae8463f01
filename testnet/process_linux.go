package testnet

import "syscall"

// childAttributes give a node a process group of its own, so only the testnet
// passes the terminal's interrupt on to it. They let it die with this process,
// however that ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
