package cli

import (
	"fmt"
	"time"
)

// LineEvery is the time between two lines of progress.
const LineEvery = 5 * time.Second

// Meter says on stderr how far long work is and how long the rest takes. Short work is silent.
type Meter struct {
	out         *Console
	what        string // such as "replaying rounds"
	now         func() time.Time
	begun, said time.Time
}

// NewMeter begins to measure.
func NewMeter(out *Console, what string) *Meter {
	m := &Meter{out: out, what: what, now: time.Now}
	m.begun = m.now()
	m.said = m.begun
	return m
}

// At says so much of all is done, unless it said so a moment ago.
func (m *Meter) At(done, all float64) {
	now := m.now()
	if now.Sub(m.said) < LineEvery || all <= 0 {
		return
	}
	m.said = now
	m.out.Say("%s", meterLine(m.what, done, all, now.Sub(m.begun)))
}

// meterLine is the state of work that took so long until now.
func meterLine(what string, done, all float64, took time.Duration) string {
	text := fmt.Sprintf("%s: %.0f %%", what, 100*done/all)
	if done > 0 && done < all {
		text += ", " + Seconds(took.Seconds()*(all-done)/done) + " left"
	}
	return text
}
