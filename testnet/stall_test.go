package testnet

import (
	"strings"
	"testing"
	"time"
)

// A run in which nothing is folded for three rounds while two nodes train fails; one that is alone, or goes on, does not.
func TestStalledFolds(t *testing.T) {
	const h, step = 24, 500 * time.Millisecond // three rounds take 36 s
	began := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		up     int
		every  int // seconds between two folds
		passed bool
	}{"goes on": {2, 35, true}, "stalls": {2, 40, false}, "alone": {1, 1000, true}} {
		w := &world{began: began}
		var tokens uint64
		for s := range 120 {
			if s%c.every == 0 {
				tokens++
			}
			w.folds.look(began.Add(time.Duration(s)*time.Second), tokens, c.up, h, step)
		}
		got := w.checkFolds()
		if got.Passed != c.passed || !c.passed && !strings.Contains(got.Detail, "nothing was folded for 39.0 s from 0s on while two nodes trained; 3 rounds take 36.0 s") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Short rounds do not make a busy machine fail.
func TestShortStallsAreForgiven(t *testing.T) {
	var w world
	began := time.Unix(1000, 0)
	for s := range 30 {
		w.folds.look(began.Add(time.Duration(s)*time.Second), 1, 4, 8, time.Millisecond)
	}
	if got := w.checkFolds(); !got.Passed || got.Detail != "at most 29.0 s without a fold while two nodes trained" {
		t.Errorf("%+v", got)
	}
}
