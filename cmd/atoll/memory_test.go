package main

import (
	"runtime"
	"testing"
)

func TestGarbagePercent(t *testing.T) {
	for alive, want := range map[uint64]int{0: 25, 1 << 20: 25, 256 << 20: 25, 512 << 20: 12, 1 << 30: 6, 2 << 30: 4, 1 << 40: 4} {
		if got := garbagePercent(alive); got != want {
			t.Errorf("%d bytes are alive: %d %%, want %d", alive, got, want)
		}
	}
}

// What is alive is looked at after each collection, until nobody wants to know.
func TestAfterEachCollection(t *testing.T) {
	told, left := make(chan uint64, 3), 3
	afterEachCollection(func(alive uint64) bool {
		left--
		told <- alive
		return left > 0
	})
	held := make([]byte, 64<<20)
	<-told
	for range 2 {
		runtime.GC()
		if alive := <-told; alive < 64<<20 {
			t.Errorf("%d bytes are alive", alive)
		}
	}
	runtime.GC()
	runtime.KeepAlive(held)
	if len(told) > 0 || left != 0 {
		t.Errorf("told once more, %d left", left)
	}
}
