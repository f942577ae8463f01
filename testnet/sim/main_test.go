package sim

import (
	"os"
	"runtime/debug"
	"testing"
)

// lateCollection is a share of garbage at which less time goes to collecting it: worlds are
// garbage soon. It saves a fifth of the time.
const lateCollection = 400

func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(lateCollection)
	}
	os.Exit(m.Run())
}
