package status

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// What stands beside the numbers is true of members, guests, newcomers and runs that are over, and says nothing where nobody knows.
func TestWordsBesideNumbers(t *testing.T) {
	at := time.Now()
	of := func(change func(s *Snapshot)) Snapshot {
		s := Snapshot{Fragments: []Fragment{{Params: 1}, {Params: 3}}, Peers: []Peer{{Self: true, State: "training", Share: 0.29}, {ID: "ab", State: "training"}}}
		s.State, s.At, s.Started, s.TokensTrained = "training", at, at.Add(-time.Hour), 1000
		s.Account.OwnFolded = []uint64{4000, 8000}
		s.Net.UpPerS, s.Net.DownPerS, s.ETASeconds = 1235, 3510, 1e9
		change(&s)
		return s
	}
	const stop = "you may stop it, and nothing is lost: Ctrl-C where it was started hands over what is left and leaves; "
	for name, c := range map[string]struct {
		s    Snapshot
		want []string // gave, healthy, stop, month
	}{
		"two train":          {of(func(*Snapshot) {}), []string{"this machine gave 29 % of what the model learned from", "all is well: 2 machines train", stop + "the others go on, and the same command comes back", "sends 3.2 GB and receives 9.1 GB a month at this speed"}},
		"it ends sooner":     {of(func(s *Snapshot) { s.ETASeconds = 3600 }), []string{"", "", "", "sends about 4.45 MB more and receives 12.6 MB more until the run is over"}},
		"nobody knows when":  {of(func(s *Snapshot) { s.ETASeconds = 0 }), []string{"", "", "", "-"}},
		"a small part":       {of(func(s *Snapshot) { s.Peers[0].Share = 0.0042 }), []string{"this machine gave 0.42 % of what the model learned from", "", "", ""}},
		"nothing folded yet": {of(func(s *Snapshot) { s.Peers[0].Share = 0 }), []string{"nothing of this machine is in the model yet: its first delta is on the way", "", "", ""}},
		"a guest":            {of(func(s *Snapshot) { s.Peers[0].Guest = true }), []string{"this machine gave 7.00k tokens as a guest; all guests together count for a tenth at most", "", "", ""}},
		"a new guest":        {of(func(s *Snapshot) { s.Peers[0].Guest, s.Account.OwnFolded = true, nil }), []string{"this machine is a guest and gave nothing yet; all guests together count for a tenth at most", "", "", ""}},
		"alone":              {of(func(s *Snapshot) { s.Peers = s.Peers[:1] }), []string{"", "all is well: 1 machine trains", stop + "nobody else is here, so the run then waits for somebody to come back", ""}},
		"an alarm": {of(func(s *Snapshot) {
			s.Alarms = []Alarm{{Kind: AlarmThin, Text: "thin"}, {Kind: AlarmDisk, Text: "full"}}
		}), []string{"", "somebody has to look: full", "", ""}},
		"one that passes":        {of(func(s *Snapshot) { s.Alarms = []Alarm{{Kind: AlarmThin, Text: "thin"}} }), []string{"", "not quite well, and it may pass by itself: thin", "", ""}},
		"it begins":              {of(func(s *Snapshot) { *s = Snapshot{Identity: Identity{State: "joining"}} }), []string{"-", "-", "you may stop it: Ctrl-C ends it, and nothing is lost", "-"}},
		"over":                   {of(func(s *Snapshot) { s.Finished, s.Agreed = true, true }), []string{"", "all is well: every machine that is here has the same model", "you may stop it: the run is over, and the model is in this folder", "-"}},
		"over, and not compared": {of(func(s *Snapshot) { s.Finished = true }), []string{"", "-", "", "-"}},
	} {
		for i, got := range []string{c.s.Gave(), c.s.Health(), c.s.MayStop(), c.s.Month()} {
			want := c.want[i]
			if want == "-" && got != "" || want != "" && want != "-" && got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
			if shown := slices.ContainsFunc(c.s.Said(true), func(row []string) bool { return row[1] == got }); shown != (got != "") {
				t.Errorf("%s: %q is shown: %v", name, got, shown)
			}
		}
		if said := c.s.Said(false); len(said) > 2 {
			t.Errorf("%s: of a node that does not run %q is said", name, said)
		}
	}
}

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{"": "", " a b ": "A b.", "ärgerlich.": "Ärgerlich.", "Done": "Done."} {
		if got := Sentence(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// Lists say what this machine cannot know of shares: all of them while it joins, and who made what was folded before it came.
func TestSharesThatAreNotKnown(t *testing.T) {
	joins := []Peer{{Self: true, ShareUnknown: true}, {ShareUnknown: true}}
	for want, peers := range map[string][]Peer{
		"":                                 {{Self: true, Share: 0.3}, {Share: 0.7}},
		"SHARE is not known yet, as":       joins,
		"SHARE leaves out 60 %, which was": {{Self: true, Share: 0.3}, {Share: 0.1}},
	} {
		if got := Shares(peers); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if text := (Snapshot{Peers: joins}).FoldedOf(); !strings.HasPrefix(text, "not known yet") {
		t.Error(text)
	}
}
