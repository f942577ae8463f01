package scenario

import (
	"os"
	"runtime/debug"
	"testing"
)

// lateCollection is as in package sim: worlds are garbage soon.
const lateCollection = 400

func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(lateCollection)
	}
	os.Exit(m.Run())
}
