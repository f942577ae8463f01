package sim

import (
	"os"
	"runtime/debug"
)

// lateCollection is a share of garbage at which less time goes to collecting it: worlds are
// garbage soon. It saves a fifth of the time.
const lateCollection = 400

// CollectLate has a process that plays worlds collect garbage late, unless GOGC says when.
func CollectLate() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(lateCollection)
	}
}
