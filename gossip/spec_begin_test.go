package gossip

import (
	"testing"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

func specBegun(t *testing.T, _ *spectest.Spec) {
	a, ids := joins(1)
	a.core.env.Config.Trusted = ids
	e := a.gives(a.begins(t), 1, wire.Manifest{Author: ids[0], Fragments: make([]wire.FragmentManifest, 2)})
	if s := find[Snapshot](e); len(s) != 1 || len(questions(t, e, wire.GetChunk)) != 0 || a.core.snapshot.busy() {
		t.Errorf("%v", e)
	}
}

// specMayGive looks at one peer that gives nothing, and then at what it gives.
func specMayGive(t *testing.T, s *spectest.Spec) {
	unknown := Time(s.Number(t, "snapshot", "unknown"))
	says := func(state wire.State, folded uint64) func(a *alone, id wire.PeerID) {
		return func(a *alone, id wire.PeerID) {
			a.saidBy(id, func(b *wire.Heartbeat) { b.State, b.Folded = state, folded })
		}
	}
	named := func(a *alone, id wire.PeerID) { a.core.env.Config.Trusted = []wire.PeerID{id} }
	guest := func(a *alone, id wire.PeerID) { a.guests(t, []wire.PeerID{id}) }
	waits := func(ms Time) func(a *alone, id wire.PeerID) {
		return func(a *alone, id wire.PeerID) { a.wait(ms); a.core.heardOf(a.now, id); a.core.Effects() }
	}
	leaves := func(a *alone, id wire.PeerID) { a.core.Step(a.now, PeerDown{Peer: id}); a.core.Effects() }
	for name, c := range map[string]struct {
		want bool
		is   []func(a *alone, id wire.PeerID)
	}{
		"a session with one that the link names":        {true, []func(*alone, wire.PeerID){named}},
		"that is over":                                  {false, []func(*alone, wire.PeerID){named, leaves}},
		"a session with one that is not known":          {false, nil},
		"it trains":                                     {true, []func(*alone, wire.PeerID){says(wire.Training, 5)}},
		"it trains, and there is no session":            {true, []func(*alone, wire.PeerID){says(wire.Training, 5), leaves}},
		"it joins":                                      {false, []func(*alone, wire.PeerID){named, says(wire.Joining, 0)}},
		"it joins and has folded something":             {true, []func(*alone, wire.PeerID){says(wire.Joining, 5)}},
		"a guest trains":                                {false, []func(*alone, wire.PeerID){named, guest, says(wire.Training, 5)}},
		"one that is not known trains, for long":        {true, []func(*alone, wire.PeerID){waits(unknown - 1000), says(wire.Training, 5)}},
		"and for longer":                                {false, []func(*alone, wire.PeerID){waits(unknown), says(wire.Training, 5)}},
		"one that the link names gives nothing so long": {true, []func(*alone, wire.PeerID){named, waits(2 * unknown), says(wire.Training, 5)}},
	} {
		a := newAlone()
		a.core.SetSelf(a.now, peers.SelfState{State: wire.Joining})
		id := a.keyed(1)
		for _, is := range c.is {
			is(a, id)
		}
		if f := a.core.Fetch(); f.Any != c.want || c.want && f.Source != id || f.Wrong != 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for name, gives := range map[string]func(a *alone, id wire.PeerID){
		"a manifest of another": func(a *alone, _ wire.PeerID) { a.gives(a.begins(t), 2, a.tipsOf(wire.PeerID{9}, 5, 1)) },
		"a manifest of one part": func(a *alone, id wire.PeerID) {
			a.gives(a.begins(t), 1, wire.Manifest{Author: id, Fragments: make([]wire.FragmentManifest, 1)})
		},
		"other bytes than a chunk": func(a *alone, id wire.PeerID) {
			a.answer(questions(t, a.gives(a.begins(t), 1, a.tipsOf(id, 5, 1)), wire.GetChunk)[0], []byte{1})
		},
		"a snapshot that does not fit": func(a *alone, id wire.PeerID) {
			a.begins(t)
			a.core.Installed(a.now, nil, wire.ErrInvalid)
		},
	} {
		a, ids := joins(1)
		named(a, ids[0])
		says(wire.Training, 5)(a, ids[0])
		if gives(a, ids[0]); a.core.Fetch().Any || a.core.Fetch().Wrong != 1 {
			t.Errorf("%s: %+v", name, a.core.Fetch())
		}
	}
	a, ids := joins(1)
	named(a, ids[0])
	a.fails(a.begins(t), wire.Busy)
	if f := a.core.Fetch(); !f.Any || f.Lacks == "" {
		t.Errorf("one that refuses: %+v", f)
	}
}
