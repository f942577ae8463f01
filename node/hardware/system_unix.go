//go:build unix

package hardware

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// MemoryBytes is the memory that this process may take: of its control group where that has a limit, as a container has, else of this
// machine. 0 if the system does not say.
func MemoryBytes() uint64 {
	all := procValue("/proc/meminfo", "MemTotal:")
	if limit, err := memlimit.FromCgroup(); err == nil && limit < all {
		return limit
	}
	return all
}

// RSSBytes is the memory that this process occupies, 0 if the system does not say.
func RSSBytes() uint64 { return procValue("/proc/self/status", "VmRSS:") }

// PeakRSSBytes is the most memory that this process has occupied, 0 if the system does not
// say.
func PeakRSSBytes() uint64 {
	var used syscall.Rusage
	if runtime.GOOS == "darwin" && syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil {
		return uint64(used.Maxrss) // bytes there
	}
	return procValue("/proc/self/status", "VmHWM:")
}

// OpenFiles is how many descriptors this process has open, 0 if the system does
// not say.
func OpenFiles() int {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(fds) - 1 // without the one that this reading took
}

// ProcessorTime is how long the processors have worked for this process, as a
// clock that began at the epoch.
func ProcessorTime() time.Time {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return time.Now() // a system without the figure: the wall clock is the next best
	}
	return time.Unix(0, used.Utime.Nano()+used.Stime.Nano())
}

// procValue reads a "Name:  123 kB" line of a file that Linux provides.
func procValue(path, name string) uint64 {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) >= 2 && fields[0] == name {
			kb, err := strconv.ParseUint(fields[1], 10, 64)
			if err == nil {
				return kb << 10
			}
		}
	}
	return 0
}

// systemPower is for systems that OnBattery does not know.
func systemPower() (bool, error) { return false, ErrPowerUnknown }
