package status

import (
	"testing"
	"time"
)

func TestStanding(t *testing.T) {
	const late = FadesAfter
	for _, c := range []struct {
		name  string
		known Known
		state string
		faded bool
	}{
		{"a learner", Known{Trained: true, Connected: true, Says: "training", Heard: true}, "training", false},
		{"one heard through others", Known{Says: "training", Heard: true}, "training", false},
		{"one paused", Known{Trained: true, Connected: true, Says: Paused, Heard: true}, Paused, false},
		{"an observer", Known{Connected: true, Says: "observing", Heard: true}, "observing", false},
		{"a relay", Known{Connected: true, Silent: true, Heard: true}, Connected, false},
		{"one that comes back", Known{Trained: true, Connected: true, Leaves: true, Heard: true}, Connected, false},
		{"one that publishes its last", Known{Trained: true, Connected: true, Says: "leaving", Leaves: true, Heard: true}, "leaving", false},
		{"one that left", Known{Trained: true, Says: "leaving", Leaves: true, Heard: true}, Left, false},
		{"one that left and hangs", Known{Trained: true, Connected: true, Says: "leaving", Leaves: true, Silent: true, Heard: true}, Left, false},
		{"one that left before a restart", Known{Trained: true, Leaves: true, Heard: true, For: time.Hour}, Left, false},
		{"one that left long ago", Known{Trained: true, Leaves: true, Heard: true, For: late}, Left, true},
		{"one that was killed", Known{Trained: true, Says: "training", Silent: true, Heard: true, For: time.Minute}, Gone, false},
		{"one that hangs", Known{Trained: true, Connected: true, Says: "training", Silent: true, Heard: true}, Gone, false},
		{"one killed before a restart", Known{Trained: true, Heard: true, For: late - 1}, Gone, false},
		{"one killed long ago", Known{Trained: true, Heard: true, For: late}, Gone, true},
		{"one that only the ledger knows", Known{Trained: true}, Gone, true},
		{"one that was revoked", Known{Trained: true, Revoked: true, Connected: true, Says: "training", Heard: true}, Revoked, false},
		{"one that was revoked long ago", Known{Trained: true, Revoked: true, Heard: true, For: late}, Revoked, true},
		{"one that was revoked and trained nothing", Known{Revoked: true, Connected: true, Says: "training", Heard: true}, "", false},
		{"a failed join", Known{Heard: true}, "", false},
		{"one that only others name", Known{}, "", false},
		{"an observer that left", Known{Says: "leaving", Leaves: true, Heard: true}, "", false},
		{"an observer that was killed", Known{Connected: true, Says: "observing", Silent: true, Heard: true}, "", false},
	} {
		if state, faded := c.known.Standing(); state != c.state || faded != c.faded {
			t.Errorf("%s is %q, faded %v; want %q, %v", c.name, state, faded, c.state, c.faded)
		}
	}
}

func TestListed(t *testing.T) {
	here, left := Peer{State: "training", Trained: true}, Peer{State: Left, Trained: true, LagS: 7300}
	faded := Peer{State: Gone, Trained: true, Faded: true, LagS: 90_000}
	never := Peer{State: Gone, Trained: true, Faded: true}
	for _, c := range []struct {
		peers []Peer
		rows  int
		note  string
	}{
		{[]Peer{here, {State: "observing"}}, 2, ""},
		{[]Peer{here, left}, 2, "who left or is gone leaves this list after 24 h"},
		{[]Peer{here, left, faded, faded}, 2, "2 more took part, and were not heard for 24 h"},
		{[]Peer{here, never}, 1, "1 more took part, and this machine never heard them"},
		{[]Peer{here, never, faded}, 1, "1 more took part, and this machine never heard them; 1 more were not heard for 24 h"},
	} {
		if listed, note := Listed(c.peers); len(listed) != c.rows || note != c.note {
			t.Errorf("%+v: %d rows, %q", c.peers, len(listed), note)
		}
	}
	if n := TookPart([]Peer{here, left, faded, {State: "observing"}, {State: Refused}}); n != 3 {
		t.Errorf("%d took part, want 3", n)
	}
	if n := LivePeers([]Peer{{Self: true, State: "training"}, here, left, faded, {State: Paused}, {State: "leaving"}, {State: Connected}}); n != 1 {
		t.Errorf("%d peers are live, want 1", n)
	}
	if text := left.SinceText(); text != "left, 2 h" {
		t.Error(text)
	}
}

// The next process knows when who trained was heard, as exactly as this one.
func TestKept(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	s := Snapshot{Identity: Identity{At: at}, Progress: Progress{TokensFolded: 5}, Peers: []Peer{
		{ID: "self", Self: true, Trained: true}, {ID: "here", Name: "lab", State: "training", Trained: true}, {ID: "leaves", State: "leaving", Trained: true},
		{ID: "left", State: Left, Trained: true, LagS: 60}, {ID: "gone", State: Gone, Trained: true, LagS: 7},
		{ID: "unknown", State: Gone, Trained: true}, {ID: "observer", State: "observing"},
	}}
	got := KeptOf(s).Heard
	want := map[string]Heard{
		"here": {AtMs: at.UnixMilli(), Name: "lab"}, "leaves": {AtMs: at.UnixMilli(), Leaves: true},
		"left": {AtMs: at.UnixMilli() - 60_000, Leaves: true}, "gone": {AtMs: at.UnixMilli() - 7000},
	}
	if len(got) != len(want) {
		t.Errorf("%+v", got)
	}
	for id, h := range want {
		if got[id] != h {
			t.Errorf("%s: %+v, want %+v", id, got[id], h)
		}
	}
}
