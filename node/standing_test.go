package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/inspect"
	"atoll/node/preflight"
	"atoll/node/status"
)

// standings are the nodes that a status lists, in words that do not change meanwhile.
func standings(s status.Snapshot) string {
	var rows []string
	for _, p := range s.Peers {
		state := p.State
		if p.Self || p.Here() {
			state = "here"
		}
		rows = append(rows, status.ShortID(p.ID)+" "+state)
	}
	slices.Sort(rows)
	return strings.Join(rows, ", ")
}

// Who only looked and who failed to join is nobody of the run. Of who left and who is gone all say the same, also after a restart,
// and the history of the run is the same then.
func TestWhoIsOfARun(t *testing.T) {
	t.Parallel()
	text := toyText(t)
	g, owner := ownedGenesis(1 << 40)
	first := launch(t, Config{Genesis: g.Encode(), Owner: owner, Data: text, Pace: slowPace, Stay: true})
	link := first.link()
	second, leaver, dies := launch(t, Config{Link: link, Data: text, Pace: slowPace}), launch(t, Config{Link: link, Data: text, Pace: slowPace}), launch(t, Config{Link: link, Data: text, Pace: slowPace})
	var ids []string
	for _, m := range []*launched{first, second, leaver, dies} {
		ids = append(ids, m.until("it contributes", contributes).Self)
	}
	facts, err := preflight.Check(t.Context(), preflight.Config{Link: link, Profile: p2p.Local, Agent: Agent})
	if must(t, err); facts.Run == nil || facts.Run.Folded == 0 || facts.Reached == "" {
		t.Errorf("the doctor found %+v", facts)
	}
	if members, err := inspect.Members(t.Context(), first.cfg.Dir); err != nil || len(members) != len(ids) {
		t.Errorf("with a doctor %d members, %v; want %d", len(members), err, len(ids))
	}
	short := filepath.Join(t.TempDir(), "short.txt")
	must(t, os.WriteFile(short, []byte("too short"), 0o600))
	fails(t, Config{Link: link, Data: short})
	leaver.leave()
	var id wire.PeerID
	must(t, id.UnmarshalText([]byte(ids[3])))
	for _, m := range []*launched{first, second} {
		m.handle().Block([]wire.PeerID{id}) // as if it had been killed
	}
	dies.stop()

	want := []string{status.ShortID(ids[0]) + " here", status.ShortID(ids[1]) + " here", status.ShortID(ids[2]) + " left", status.ShortID(ids[3]) + " gone"}
	slices.Sort(want)
	agrees := func(s status.Snapshot) bool {
		return standings(s) == strings.Join(want, ", ") && status.TookPart(s.Peers) == len(ids)
	}
	second.until("who left and who is gone", agrees)
	first.until("who left and who is gone", agrees)
	before := first.leave()
	again := launch(t, Config{Dir: first.cfg.Dir, Link: second.link(), Data: text, Pace: slowPace, Stay: true})
	after := again.until("the same after a restart", agrees)
	began, _ := status.Span(before.History)
	since, ended := status.Span(after.History)
	if began != since || ended.AtMs <= began.AtMs {
		t.Errorf("the history of %+v goes on from %+v to %+v", began, since, ended)
	}
	for i, p := range after.Peers {
		if was := before.Peers[i]; was.ID != p.ID || p.TokensFolded < was.TokensFolded || p.Away() && p.LagS < was.LagS {
			t.Errorf("%+v before, %+v after a restart", was, p)
		}
	}
}
