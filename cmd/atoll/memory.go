package main

import (
	"os"
	"runtime/debug"
)

// garbageShare is how much garbage a node lets gather, in per cent of what is alive. It holds hundreds of megabytes
// of numbers. A collection need not look at them, and with Go's default of 100 a node would take twice the memory.
const garbageShare = 25

// collectEarly has the garbage collector keep to garbageShare, unless the environment says otherwise.
func collectEarly() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbageShare)
	}
}
