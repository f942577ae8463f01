package main

import (
	"os"
	"runtime/debug"
)

// garbageShare is how much garbage a node lets gather, in per cent of what is alive. It holds hundreds of megabytes
// of numbers, which a collection need not look at, and at Go's own 100 would take as much memory again.
const garbageShare = 25

// collectEarly has the garbage collector keep to garbageShare, unless the environment says otherwise.
func collectEarly() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbageShare)
	}
}
