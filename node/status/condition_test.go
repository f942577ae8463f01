package status

import (
	"strings"
	"testing"
)

func TestCondition(t *testing.T) {
	self, here := Peer{Self: true, State: "training"}, Peer{State: "training", Trained: true}
	gone, left, faded := Peer{State: Gone, Trained: true}, Peer{State: Left, Trained: true}, Peer{State: Gone, Trained: true, Faded: true}
	for _, c := range []struct {
		name       string
		state      string
		disk       string
		finished   bool
		peers      []Peer
		word, says string
	}{
		{"alone from the start", "training", "", false, []Peer{self}, "training", ""},
		{"with another", "training", "", false, []Peer{self, here, gone}, "training", ""},
		{"the other fell silent", "training", "", false, []Peer{self, gone}, CutOff, "the other machine is not heard"},
		{"two fell silent", "training", "", false, []Peer{self, gone, left, gone}, CutOff, "none of 2 machines"},
		{"one paused is here", "training", "", false, []Peer{self, gone, {State: Paused}}, "training", ""},
		{"the other left", "training", "", false, []Peer{self, left}, "training", ""},
		{"the other was gone long ago", "training", "", false, []Peer{self, faded}, "training", ""},
		{"a full disk", "training", "full", false, []Peer{self, gone}, "disk full", "nothing is published"},
		{"paused with a full disk", Paused, "full", false, []Peer{self, here}, Paused, ""},
		{"joining after a restart", "joining", "", false, []Peer{self, gone}, "joining", ""},
		{"after the end", "stopped", "full", true, []Peer{self, gone}, "finished", ""},
		{"revoked", "training", "", false, []Peer{{Self: true, State: Revoked}, gone}, Revoked, "nobody listens"},
		{"at the end", "stopped", "", false, []Peer{self, gone}, "ending", ""},
	} {
		s := Snapshot{Identity: Identity{State: c.state, Disk: c.disk}, Agreement: Agreement{Finished: c.finished}, Peers: c.peers}
		if got := s.Condition(); got.Word != c.word || !strings.Contains(got.Why, c.says) {
			t.Errorf("%s: %+v, want %q and %q", c.name, got, c.word, c.says)
		}
	}
}
