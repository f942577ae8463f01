package status

import (
	"strings"
	"testing"
	"time"
)

func TestAlarms(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	id := func(digit string) string { return strings.Repeat(digit, 64) }
	at := func(ago time.Duration, kind, peer, remedy string) Event {
		return Event{At: now.Add(-ago), Kind: kind, Peer: peer, Text: "what was found", Remedy: remedy}
	}
	s := Snapshot{Identity: Identity{Self: id("a"), At: now, Started: now.Add(-time.Hour)}, Plan: Plan{H: 24, Bound: BoundThin},
		Events: []Event{
			at(time.Hour, "state wrong", id("b"), "long ago"), at(9*time.Minute, "damaged", "", "check the disk"), at(8*time.Minute, "connected", id("b"), ""),
			at(time.Minute, "damaged", ShortID(id("a")), "check the disk"), at(time.Second, "state differs", id("b"), "wait"),
		},
		Peers: []Peer{{ID: id("a"), Self: true}, {ID: id("b"), State: "training"}, {ID: id("c"), State: Gone, LagS: 31}, {ID: id("d"), State: Refused}},
	}
	alarms := AlarmsOf(s)
	var lines []string
	for _, a := range alarms {
		lines = append(lines, a.Line())
	}
	want := []string{
		"state differs bbbbbbbbbb: what was found; do: wait", "damaged: what was found; do: check the disk",
		"silent cccccccccc: 1 of 2 peers not heard (cccccccccc); do: look whether they are cut off or switched off; the run goes on without them",
	}
	if len(lines) != 4 || strings.Join(lines[:3], "\n") != strings.Join(want, "\n") || alarms[3].Kind != AlarmThin || !strings.Contains(lines[3], "the run's H is 24") {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
	if since := alarms[1].Since; since != now.Add(-9*time.Minute) || alarms[2].Since != now.Add(-31*time.Second) {
		t.Errorf("since %v and %v", since, alarms[2].Since)
	}
	if alarms[1].Passing() || !alarms[2].Passing() {
		t.Error("only silence passes by itself")
	}
	if s.Events = append(s.Events, at(time.Hour, "disk", "", "free some room")); AlarmsOf(s)[0].Kind != "disk" {
		t.Errorf("what lasts is gone: %v", AlarmsOf(s))
	}
	if s.Events = append(s.Events, at(0, "disk well", "", "")); AlarmsOf(s)[0].Kind == "disk" {
		t.Errorf("what is over is still there: %v", AlarmsOf(s))
	}
	if s.Finished = true; len(AlarmsOf(s)) != 2 {
		t.Errorf("of a run that is over: %v", AlarmsOf(s))
	}
}

// A model that predicts worse than it did is told on all screens, during the run and at its end.
func TestWorse(t *testing.T) {
	points := func(of func(*Point, float32), values ...float32) (all []Point) {
		for _, v := range values {
			p := Point{}
			of(&p, v)
			all = append(all, p)
		}
		return all
	}
	val, loss := func(p *Point, v float32) { p.Val = v }, func(p *Point, v float32) { p.Loss = v }
	for _, c := range []struct {
		history []Point
		want    string
	}{
		{nil, ""},
		{points(val, 0, 5.5, 4, 97), "(97, at first 5.5)"},
		{points(val, 5.5, 97, 0), "(97, at first 5.5)"}, // the last moment has not measured it
		{points(val, 5.5, 97, 5), ""},
		{points(val, 2.9, 3), ""}, // it overfits
		{points(loss, 5.5, 97), "a loss of 97, at first 5.5"},
		{points(loss, 5.5, 5), ""},
		{points(loss, 2, 3), ""},                                    // of other rows
		{append(points(val, 5.5, 5), points(loss, 5.5, 97)...), ""}, // one batch says less than what is held out
	} {
		s := Snapshot{History: c.history}
		if got := s.Worse(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.history, got, c.want)
		}
		for _, s.Finished = range []bool{false, true} {
			if alarms := AlarmsOf(s); (c.want == "") != (len(alarms) == 0) || len(alarms) > 0 && (alarms[0].Kind != AlarmWorse || alarms[0].Passing()) {
				t.Errorf("%v: alarms %v", c.history, alarms)
			}
		}
		if stop := s.MayStop(); strings.Contains(stop, "the model is in this folder") == (c.want != "") {
			t.Errorf("%v: %s", c.history, stop)
		}
	}
}
