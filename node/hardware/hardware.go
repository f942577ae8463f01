// Package hardware says what this machine has, what this process takes of it,
// and what a node of a run needs.
package hardware

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/klauspost/cpuid/v2"
)

// CPUName is what this machine calls its processor, with the threads that Go uses of it.
func CPUName() string {
	name := strings.TrimSpace(cpuid.CPU.BrandName)
	if name == "" {
		name = runtime.GOARCH
	}
	return name + " (" + strconv.Itoa(runtime.GOMAXPROCS(0)) + " threads)"
}

// MemoryBytes is the memory of this machine, 0 if the system does not say.
func MemoryBytes() uint64 { return procValue("/proc/meminfo", "MemTotal:") }

// RSSBytes is the memory that this process occupies, 0 if the system does not say.
func RSSBytes() uint64 { return procValue("/proc/self/status", "VmRSS:") }

// PeakRSSBytes is the most memory that this process has occupied, 0 if the system does not
// say.
func PeakRSSBytes() uint64 { return procValue("/proc/self/status", "VmHWM:") }

// OpenFiles is how many descriptors this process has open, 0 if the system does
// not say.
func OpenFiles() int {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(fds) - 1 // without the one that this reading took
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
