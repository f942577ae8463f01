package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"atoll/node/hardware"
)

// collectEarly has the garbage collector keep to hardware.Garbage, unless the environment says otherwise: with Go's
// default a node would take twice the memory that it uses.
func collectEarly() {
	if os.Getenv("GOGC") != "" {
		return
	}
	now := -1
	afterEachCollection(func(alive uint64) bool {
		if percent := garbagePercent(alive); percent != now {
			now = percent
			debug.SetGCPercent(percent)
		}
		return true
	})
}

// sentinel is garbage as soon as it is made, so a collection finds it.
type sentinel struct{ _ *sentinel } // the runtime may keep a small object without pointers for longer

// afterEachCollection calls do with the bytes that are alive, now and after each collection until it says no.
func afterEachCollection(do func(alive uint64) (more bool)) {
	alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(alive)
	if do(alive[0].Value.Uint64()) {
		runtime.SetFinalizer(new(sentinel), func(*sentinel) { afterEachCollection(do) })
	}
}

// garbagePercent is hardware.Garbage of what is alive, in per cent of that. There is a least: a small heap is collected often enough.
func garbagePercent(alive uint64) int {
	const small = 4 << 20 // about what a process has at its start
	alive = max(alive, small)
	return int(100 * uint64(hardware.Garbage(int64(alive))) / alive)
}
