package testnet

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestPatienceWithALimit(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_000)
	p := newPatience(time.Hour, began)
	if err := p.spent(began.Add(time.Hour-1), 0); err != nil {
		t.Errorf("a world that has folded nothing yet: %v", err)
	}
	err := p.spent(began.Add(time.Hour), 50)
	if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "did not end within 1h0m0s; raise --timeout") {
		t.Errorf("error %v", err)
	}
}

func TestPatienceWhileItGoesOn(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_000)
	p := newPatience(0, began)
	for i := range 100 { // more is folded just in time
		if err := p.spent(began.Add(time.Duration(i)*(stallTime-1)), float64(i)); err != nil {
			t.Fatalf("after %d: %v", i, err)
		}
	}
	last := began.Add(99 * (stallTime - 1))
	if err := p.spent(last.Add(stallTime-1), 99); err != nil { // no more than before
		t.Errorf("error %v", err)
	}
	err := p.spent(last.Add(stallTime), 99)
	if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "nothing was folded for 30m0s") {
		t.Errorf("error %v", err)
	}
	if err := p.spent(last.Add(stallTime), 99.5); err != nil {
		t.Errorf("more is folded in the last moment: %v", err)
	}
}
