package p2p

import (
	"testing"
	"time"
)

func TestTwoHostsLoopback(t *testing.T) {
	a, b := start(t, newPerson(1).config()), start(t, newPerson(2).config())
	join(t, a, b)
	b.Handle(echo)
	got, err := a.Call(t.Context(), b.ID(), []byte("hi"), 10)
	if err != nil || string(got[1:]) != "hi" {
		t.Fatalf("%q %v", got, err)
	}
}

func TestTwoHostsVirtual(t *testing.T) {
	inWorld(t, 20e6, 10*time.Millisecond, func(t *testing.T, w *world) {
		hosts, stop := w.hosts(2)
		defer stop()
		a, b := hosts[0], hosts[1]
		join(t, a, b)
		b.Handle(echo)
		got, err := a.Call(t.Context(), b.ID(), []byte("hi"), 10)
		if err != nil || string(got[1:]) != "hi" {
			t.Fatalf("%q %v", got, err)
		}
	})
}
