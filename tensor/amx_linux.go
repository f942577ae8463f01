//go:build amd64 && !purego

package tensor

import (
	"fmt"
	"syscall"
)

const (
	requestPermission = 0x1023 // ARCH_REQ_XCOMP_PERM of arch_prctl
	tileData          = 18     // the number of the tile registers among the states that a processor saves
)

// permitTiles asks the system to save tile registers for this process, and says why not if it refuses. The permission
// counts for all threads, those that run already too. With it a signal takes 8 KiB more on the stack of its
// handler, 11.7 KiB in all (AT_MINSIGSTKSZ). The stacks that Go gives its threads for signals have 32 KiB; the system looks at each of
// them, and refuses if one is too small, as a thread of foreign code may have it.
func permitTiles() string {
	_, _, err := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	if err != 0 {
		return fmt.Sprintf("the system does not let this process use AMX: %v", err)
	}
	return ""
}
