// Package hardware says what this machine has, what this process takes of it,
// and what a node of a run needs.
package hardware

import (
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
