package gossip

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"atoll/gossip/fetch"
	"atoll/gossip/peers"
	"atoll/gossip/serve"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

func TestSpecSnapshot(t *testing.T) {
	spectest.Run(t, "N", map[string]spectest.Clause{
		"N-1": spectest.All(specMajority, specWhoVotes, specDisputes), "N-1.2": specGuestSources, "N-1.3": specNewerTips, "N-1.4": specNewerVotes, "N-1.5": specGuestChunks, "N-1.6": specGuestChunks, "N-2": spectest.All(specBegun, specGenesisVote), "N-2.2": specMayGive, "N-3": specHistoryKept, "N-3.2": specHistoryAdmitted,
		"N-4": spectest.All(specOwnEnough, specOwnCounts, specOwnBelieved, specMayTell, specTold),
	})
}

// joins is a core without a snapshot, beside peers with keys that sent a heartbeat.
func joins(keys ...int) (*alone, []wire.PeerID) {
	a := newAlone()
	a.core.SetSelf(0, peers.SelfState{State: wire.Joining})
	var ids []wire.PeerID
	for _, k := range keys {
		id := a.keyed(k)
		a.saidBy(id, func(b *wire.Heartbeat) { b.Folded = 100 - uint64(k) })
		ids = append(ids, id)
	}
	a.core.Effects()
	return a, ids
}

// begins to fetch a snapshot, and returns the request to the first snapshot source.
func (a *alone) begins(t testing.TB) question {
	t.Helper()
	a.core.FetchSnapshot(a.now)
	q := questions(t, a.core.Effects(), wire.GetManifest, wire.GetSnapshot)
	if len(q) != 1 {
		t.Fatalf("asks %+v", q)
	}
	return q[0]
}

func TestSnapshotSource(t *testing.T) {
	s := spectest.Load(t)
	numbers(t, s, "snapshot", map[string]int64{"gather": gatherHeartbeats, "disputes": maxDisputes, "newer": renewRounds, "unknown": strangerMs})
	for name, prepare := range map[string]func(a *alone, ids []wire.PeerID) wire.PeerID{
		"most tokens": func(_ *alone, ids []wire.PeerID) wire.PeerID { return ids[0] },
		"joining": func(a *alone, ids []wire.PeerID) wire.PeerID {
			a.saidBy(ids[0], func(b *wire.Heartbeat) { b.State, b.Folded = wire.Joining, 999 })
			return ids[1]
		},
		"not connected": func(a *alone, ids []wire.PeerID) wire.PeerID {
			a.core.Step(a.now, PeerDown{Peer: ids[0]})
			return ids[1]
		},
		"refused": func(a *alone, ids []wire.PeerID) wire.PeerID {
			snapshotOf(a.core.env.Find(ids[0])).badSnapshots = 1
			return ids[1]
		},
		"of the link": func(a *alone, ids []wire.PeerID) wire.PeerID {
			a.core.env.Config.Trusted = ids[2:3]
			return ids[2]
		},
		"refused, the link": func(a *alone, ids []wire.PeerID) wire.PeerID {
			a.core.env.Config.Trusted = ids[2:3]
			snapshotOf(a.core.env.Find(ids[2])).badSnapshots = 1
			return ids[0]
		},
	} {
		a, ids := joins(1, 2, 3, 4)
		want := prepare(a, ids)
		a.core.Effects()
		if q := a.begins(t); q.call.To != want {
			t.Errorf("%s: asks %v, want %v", name, q.call.To, want)
		}
	}
	a, ids := joins(1, 2, 3)
	a.core.snapshot.fetch(ids[2], true)
	if q := questions(t, a.core.Effects(), wire.GetManifest); len(q) != 1 || q[0].call.To != ids[2] {
		t.Errorf("repair chose %v, asks %+v", ids[2], q)
	}
}

func TestSnapshotGathers(t *testing.T) {
	s := spectest.Load(t)
	periods, witnesses := Time(s.Number(t, "snapshot", "gather")), int(minAttesters)
	a, _ := joins(1)
	a.core.FetchSnapshot(a.now)
	wait := periods * Time(a.core.HeartbeatPeriodMs())
	if q := questions(t, append(a.core.Effects(), a.wait(wait-100)...), wire.GetManifest); len(q) != 0 {
		t.Errorf("asks %+v before the time", q)
	}
	if q := questions(t, a.wait(100), wire.GetManifest); len(q) != 1 {
		t.Errorf("asks %+v after the time", q)
	}
	a, _ = joins(1, 2, 3)
	if len(a.core.env.List) != witnesses {
		t.Fatal("the example is of another number")
	}
	a.begins(t)
	a, ids := joins(1)
	a.core.env.Config.Trusted = ids
	a.begins(t)
}

func TestTipsManifestAsked(t *testing.T) {
	a, _ := joins(1, 2, 3)
	if q := a.begins(t); q.Kind != wire.GetManifest {
		t.Errorf("asks for %v", q.Kind)
	}
	a, _ = joins(1, 2, 3)
	a.core.snapshot.resume = []uint32{4, 7}
	if q := a.begins(t); q.Kind != wire.GetSnapshot || !slices.Equal(q.At, []uint32{4, 7}) {
		t.Errorf("with chunks of rounds 4 and 7 asks for %v of %v", q.Kind, q.At)
	}
}

func TestTipsResumed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *wire.Manifest)
		goesOn bool
	}{
		"all of them": {func(*wire.Manifest) {}, true},
		"old ones":    {func(m *wire.Manifest) { m.Fragments[1].Closed = 7 + 16 }, true},
		"too old":     {func(m *wire.Manifest) { m.Fragments[1].Closed = 7 + 17 }, false},
		"another":     {func(m *wire.Manifest) { m.Fragments[1].Round = 6 }, false},
		"one missing": {func(m *wire.Manifest) { m.Fragments[1].Size, m.Fragments[1].Chunks, m.Fragments[1].Round = 0, nil, 0 }, false},
	} {
		a, ids := joins(1, 2, 3)
		a.core.env.Config.Trusted = ids[:1]
		a.core.snapshot.resume = []uint32{7, 7}
		m := a.tipsOf(ids[0], 7, 1)
		q := a.begins(t)
		c.change(&m)
		next := questions(t, a.gives(q, 1, m), wire.GetChunk, wire.GetManifest)
		if len(next) == 0 || (next[0].Kind == wire.GetChunk) != c.goesOn {
			t.Errorf("%s: asks %+v", name, next)
		}
	}
}

// voted has a manifest of round 5 come, and returns the requests for votes.
func (a *alone) voted(t testing.TB, ids []wire.PeerID) []question {
	t.Helper()
	return questions(t, a.gives(a.begins(t), 1, a.tipsOf(ids[0], 5, 1)), wire.GetRounds, wire.GetChunk)
}

// vote answers for a manifest of tipsOf, or against it where change says so.
func (a *alone) vote(q question, change func(r *wire.RangeAnswer)) []Effect {
	answers := make([]wire.RangeAnswer, len(q.Ranges))
	for i, r := range q.Ranges {
		answers[i] = wire.RangeAnswer{Closed: 9, Chain: wire.Digest{byte(r.Fragment + 1)}, State: wire.Digest{byte(r.Fragment + 2)}}
		if change != nil {
			change(&answers[i])
		}
	}
	return a.answer(q, wire.EncodeRounds(answers))
}

func against(r *wire.RangeAnswer)      { r.State = wire.Digest{99} }
func knowsNothing(r *wire.RangeAnswer) { r.State = wire.Digest{} }

func TestTipsVoters(t *testing.T) {
	most := int(maxAttesters)
	var keys []int
	for k := range most + 10 {
		keys = append(keys, k+1)
	}
	a, ids := joins(keys...)
	a.chain.contributed = map[wire.PeerID]bool{ids[4]: true, ids[9]: true}
	a.saidBy(ids[20], func(b *wire.Heartbeat) { b.State = wire.Joining })
	others := slices.Clone(ids[1:])
	lot := func(id wire.PeerID) wire.Digest { return wire.Sum(append(a.core.env.cfg.Self[:], id[:]...)) }
	slices.SortFunc(others, func(p, q wire.PeerID) int {
		if a.chain.contributed[p] != a.chain.contributed[q] {
			return map[bool]int{true: -1, false: 1}[a.chain.contributed[p]]
		}
		return lot(p).Compare(lot(q))
	})
	others = slices.DeleteFunc(others, func(id wire.PeerID) bool { return id == ids[20] })
	var asked []wire.PeerID
	for _, q := range a.voted(t, ids) {
		asked = append(asked, q.call.To)
	}
	sameIDs(t, "asked", asked, others[:most]...)
}

func TestTipsVotesAsked(t *testing.T) {
	a, ids := joins(1, 2, 3)
	m := a.tipsOf(ids[0], 5, 1)
	m.Fragments[1] = wire.FragmentManifest{}
	q := questions(t, a.gives(a.begins(t), 1, m), wire.GetRounds)
	if len(q) != 2 || !slices.Equal(q[0].Ranges, []wire.Range{{From: 6, To: 6}}) {
		t.Errorf("asks %+v", q)
	}
}

// taken says whether chunks of a manifest are asked for.
func fetchesChunks(t testing.TB, e []Effect) bool {
	t.Helper()
	return len(questions(t, e, wire.GetChunk)) > 0
}

func specWhoVotes(t *testing.T, _ *spectest.Spec) {
	for name, change := range map[string]func(r *wire.RangeAnswer){
		"the state":       knowsNothing,
		"the chain":       func(r *wire.RangeAnswer) { r.Chain = wire.Digest{} },
		"what is against": against,
	} {
		a, ids := joins(1, 2, 3, 4, 5)
		q := a.voted(t, ids)
		for _, q := range q[:3] {
			a.vote(q, change)
		}
		if e := a.vote(q[3], nil); fetchesChunks(t, e) != (name != "what is against") { // the source and one, to three
			t.Errorf("three that do not know %s: %v", name, e)
		}
	}
	a, ids := joins(1, 2, 3)
	q := a.voted(t, ids)
	a.vote(q[0], against)
	if e := a.fails(q[1], wire.Busy); fetchesChunks(t, e) { // one to one
		t.Error("a peer that does not answer has a vote")
	}
}

// moves has a joiner take a quarter of fragment 0 while its source closes some rounds more, and returns what it
// asks then.
func (a *alone) moves(t testing.TB, id wire.PeerID, closed uint32) []question {
	t.Helper()
	const chunks = 32
	asked := questions(t, a.gives(a.begins(t), 1, a.tipsOf(id, 7, chunks)), wire.GetChunk)
	a.saidBy(id, func(b *wire.Heartbeat) { b.Closed = []uint32{7 + closed, 7 + closed} })
	e := a.wait(renewMs)
	for i := range chunks / 4 {
		e = append(e, a.answer(asked[i], specChunk(0, i, chunks))...)
		asked = append(asked, questions(t, e, wire.GetChunk)...)
		if q := questions(t, e, wire.GetSnapshot); len(q) > 0 {
			return q
		}
		e = nil
	}
	return nil
}

func specNewerTips(t *testing.T, s *spectest.Spec) {
	enough := uint32(s.Number(t, "snapshot", "newer"))
	a, ids := joins(1)
	a.core.env.Config.Trusted = ids
	if q := a.moves(t, ids[0], enough-1); len(q) != 0 {
		t.Errorf("asks %+v for tips that are hardly newer", q)
	}
	a, ids = joins(1)
	a.core.env.Config.Trusted = ids
	q := a.moves(t, ids[0], enough)
	if len(q) != 1 || !slices.Equal(q[0].At, []uint32{wire.NoTip, wire.NewestTip}) {
		t.Fatalf("asks %+v", q)
	}
	votes := questions(t, a.gives(q[0], 1, a.tipsOf(ids[0], 9, 32)), wire.GetRounds)
	if len(votes) != 1 || !slices.Equal(votes[0].Ranges, []wire.Range{{From: 8, To: 8}, {Fragment: 1, From: 10, To: 10}}) {
		t.Fatalf("asks %+v of the chains", votes)
	}
	e := a.vote(votes[0], nil)
	if f := find[Fetching](e); len(f) != 1 || !slices.Equal(f[0].At, []uint32{7, 9}) {
		t.Errorf("fetches %+v", f)
	}
}

func specNewerVotes(t *testing.T, _ *spectest.Spec) {
	for name, c := range map[string]struct {
		vote  func(r *wire.RangeAnswer)
		taken bool
	}{
		"shows them": {nil, true}, "shows another": {against, false}, "does not know": {knowsNothing, false},
		"changed its chain": {func(r *wire.RangeAnswer) {
			if r.Chain == (wire.Digest{1}) { // of the fragment that is begun
				r.Chain = wire.Digest{99}
			}
		}, false},
	} {
		a, ids := joins(1)
		a.core.env.Config.Trusted = ids
		q := a.moves(t, ids[0], renewRounds)
		votes := questions(t, a.gives(q[0], 1, a.tipsOf(ids[0], 9, 32)), wire.GetRounds)
		if e := a.vote(votes[0], c.vote); (count[Fetching](e) == 1) != c.taken {
			t.Errorf("a source that %s: taken %v", name, !c.taken)
		}
	}
}

func specMajority(t *testing.T, _ *spectest.Spec) {
	for _, c := range []struct {
		against int
		want    bool
	}{{0, true}, {1, true}, {2, true}, {3, false}} {
		a, ids := joins(1, 2, 3, 4, 5) // the source and four
		var e []Effect
		for i, q := range a.voted(t, ids) {
			change := against
			if i >= c.against {
				change = nil
			}
			e = append(e, a.vote(q, change)...)
		}
		if fetchesChunks(t, e) != c.want {
			t.Errorf("%d of 5 against: taken %v", c.against, !c.want)
		}
	}
	a, ids := joins(1, 2, 3, 4) // two to two
	var e []Effect
	for i, q := range a.voted(t, ids) {
		e = append(e, a.vote(q, []func(r *wire.RangeAnswer){nil, against, func(r *wire.RangeAnswer) { r.Chain = wire.Digest{98} }}[i])...)
	}
	if fetchesChunks(t, e) {
		t.Error("half is not more than half")
	}
}

func TestTipsVotesCounted(t *testing.T) {
	a, ids := joins(1, 2, 3)
	q := a.voted(t, ids)
	if e := a.vote(q[0], nil); fetchesChunks(t, e) {
		t.Error("counted before all have answered")
	}
	limit := Time(attestMs)
	if q[1].call.TimeoutMs != int64(limit) {
		t.Errorf("asks within %d", q[1].call.TimeoutMs)
	}
	e := a.wait(limit - 100)
	if fetchesChunks(t, e) || !fetchesChunks(t, a.wait(100)) {
		t.Error("counted at another time")
	}
}

func TestTipsNoVote(t *testing.T) {
	a, ids := joins(1, 2, 3)
	a.core.env.Config.Trusted = ids[:1]
	if q := a.voted(t, ids); len(q) == 0 || q[0].Kind != wire.GetChunk {
		t.Errorf("the link names the source: asks %+v", q)
	}
	a, ids = joins(1, 2, 3)
	a.core.snapshot.fetch(ids[0], true)
	q := questions(t, a.core.Effects(), wire.GetManifest)
	if next := questions(t, a.gives(q[0], 1, a.tipsOf(ids[0], 5, 1)), wire.GetRounds, wire.GetChunk); len(next) == 0 || next[0].Kind != wire.GetChunk {
		t.Errorf("repair chose the source: asks %+v", next)
	}
}

func specGenesisVote(t *testing.T, _ *spectest.Spec) {
	for _, c := range []struct {
		folded []uint64 // that the heartbeats of others show
		want   int
	}{{[]uint64{0, 0}, 1}, {[]uint64{5, 0}, 1}, {[]uint64{5, 5}, 0}} {
		a, ids := joins(1, 2, 3)
		for i, n := range c.folded {
			a.saidBy(ids[i+1], func(b *wire.Heartbeat) { b.Folded = n })
		}
		e := a.gives(a.begins(t), 1, wire.Manifest{Author: ids[0], Fragments: make([]wire.FragmentManifest, 2)})
		if count[Snapshot](e) != c.want || len(questions(t, e, wire.GetRounds)) != 0 {
			t.Errorf("others folded %v: %v", c.folded, e)
		}
	}
}

// outvotes has every voter speak against the source's manifest, of tips that the
// source alone has.
func (a *alone) outvotes(t testing.TB, q question, key int, ids []wire.PeerID) {
	t.Helper()
	m := a.tipsOf(ids[key-1], 5, 1)
	for f := range m.Fragments {
		m.Fragments[f].State = wire.Digest{byte(100 + key)}
	}
	for _, v := range questions(t, a.gives(q, key, m), wire.GetRounds) {
		if e := a.vote(v, against); fetchesChunks(t, e) {
			t.Fatal("it is taken")
		}
	}
}

func TestTipsOutvoted(t *testing.T) {
	a, ids := joins(1, 2, 3)
	a.outvotes(t, a.begins(t), 1, ids)
	retry := Time(snapshotRetryMs)
	if q := questions(t, a.wait(retry-100), wire.GetManifest); len(q) != 0 {
		t.Errorf("asks %+v before the pause", q)
	}
	if q := questions(t, a.wait(100), wire.GetManifest); len(q) != 1 || q[0].call.To != ids[1] {
		t.Errorf("asks %+v", q)
	}
}

func specDisputes(t *testing.T, s *spectest.Spec) {
	limit := int(s.Number(t, "snapshot", "disputes"))
	for _, rivals := range []int{1, 2} {
		a, ids := joins(1, 2, 3)
		q := a.begins(t)
		key := func(id wire.PeerID) int { return slices.Index(ids, id) + 1 }
		for i := range limit {
			a.outvotes(t, q, key(q.call.To), ids)
			var next []question
			for len(next) == 0 {
				next = questions(t, a.wait(100), wire.GetManifest)
				for _, id := range ids {
					a.core.heardOf(a.now, id)
				}
			}
			q = next[0]
			if i == limit-1 {
				break
			}
		}
		var e []Effect
		for i, v := range questions(t, a.gives(q, key(q.call.To), a.tipsOf(q.call.To, 5, 1)), wire.GetRounds) {
			e = append(e, a.vote(v, func(r *wire.RangeAnswer) { r.State = wire.Digest{byte(50 + i*(2-rivals))} })...)
		}
		if fetchesChunks(t, e) != (rivals == 1) {
			t.Errorf("after %d disputes, one vote and %d for another position: taken %v", limit, rivals, rivals != 1)
		}
	}
}

func TestTipsTried(t *testing.T) {
	a, ids := joins(1, 2, 3)
	q := a.begins(t)
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Joining})
	var asked []wire.PeerID
	for range 3 {
		asked = append(asked, q.call.To)
		a.fails(q, wire.NotFound)
		next := questions(t, a.wait(1000), wire.GetManifest)
		if len(next) == 0 {
			break
		}
		q = next[0]
	}
	sameIDs(t, "asked", asked, ids...)
	a, ids = joins(1, 2, 3)
	q = a.begins(t)
	a.fails(q, wire.NotFound)
	a.core.CancelFetch(a.now)
	a.now += Time(triedMs)
	for _, id := range ids {
		a.core.heardOf(a.now, id)
	}
	a.core.Effects()
	if q := a.begins(t); q.call.To != ids[0] {
		t.Errorf("asks %v when that is over", q.call.To)
	}
}

// transfers is a core that fetches chunks of peer 1, and what it asked.
func transfers(t testing.TB, chunks int, keys ...int) (*alone, []wire.PeerID, []question) {
	t.Helper()
	a, ids := joins(keys...)
	a.core.env.Config.Trusted = ids[:1]
	return a, ids, questions(t, a.gives(a.begins(t), 1, a.tipsOf(ids[0], 5, chunks)), wire.GetChunk, wire.GetSnapshot)
}

// only are the questions of a kind.
func only(kind wire.RequestKind, all []question) []question {
	return slices.DeleteFunc(slices.Clone(all), func(q question) bool { return q.Kind != kind })
}

func TestTipsChunkSources(t *testing.T) {
	a, ids, q := transfers(t, 3, 1, 2, 3, 4, 5, 6, 7)
	tips := only(wire.GetSnapshot, q)
	if len(tips) != int(maxSnapshotSources)-1 || !slices.Equal(tips[0].At, []uint32{5, 5}) {
		t.Fatalf("asks %+v", tips)
	}
	key := slices.Index(ids, tips[0].call.To) + 1
	e := a.gives(tips[0], key, a.tipsOf(tips[0].call.To, 5, 3))
	e = append(e, a.fails(tips[1], wire.NotFound)...)
	if more := questions(t, e, wire.GetSnapshot); len(more) != 1 {
		t.Errorf("after one that gives and one that does not: asks %+v", more)
	}
}

func TestTipsPrefix(t *testing.T) {
	a, ids, q := transfers(t, 8, 1, 2)
	m := a.tipsOf(ids[1], 5, 8)
	m.Fragments[0].Chunks[1] = wire.Digest{1} // the first is the same
	m.Fragments[1].Chunks[0] = wire.Digest{1} // none is
	e := a.gives(only(wire.GetSnapshot, q)[0], 2, m)
	first := wire.Sum(specChunk(0, 0, 8))
	for _, c := range only(wire.GetChunk, q) { // the source is gone: all is asked of the other
		e = append(e, a.fails(c, wire.Busy)...)
	}
	asked := false
	for _, c := range questions(t, append(e, a.wait(300)...), wire.GetChunk) {
		if c.call.To == ids[1] {
			asked = true
			if c.Digest != first {
				t.Errorf("asks for chunk %v, which the peer's tips do not begin with", c.Digest)
			}
		}
	}
	if !asked {
		t.Error("asks it for nothing")
	}
}

func TestTipsChunksFlying(t *testing.T) {
	least, most := int(minChunkAhead), int(serve.MaxChunkAhead)
	perChunk := peers.Rate(wire.ChunkSize) / peers.Rate(int64(chunkAheadMs))
	for sends, want := range map[peers.Rate]int{1: 1, wire.ChunkSize * 0.99 / chunkAloneMs: 1, wire.ChunkSize * 1.01 / chunkAloneMs: least, perChunk * 1.01: least + 1, perChunk * 0.99: least, perChunk * 3.5: least + 3, 1e9: most} {
		a, ids := joins(1)
		a.core.env.Config.Trusted = ids
		a.core.env.Find(ids[0]).Rate = sends
		q := questions(t, a.gives(a.begins(t), 1, a.tipsOf(ids[0], 5, 30)), wire.GetChunk)
		if len(q) != want {
			t.Errorf("at %g bytes/ms %d chunks of one source, want %d", sends, len(q), want)
		}
	}
	a, ids := joins(1, 2, 3, 4, 5)
	for _, id := range ids {
		a.core.env.Find(id).Rate = 1e9
	}
	a.core.env.Config.Trusted = ids[:1]
	e := a.gives(a.begins(t), 1, a.tipsOf(ids[0], 5, 30))
	all := len(questions(t, e, wire.GetChunk))
	for _, q := range questions(t, e, wire.GetSnapshot) {
		key := slices.Index(ids, q.call.To) + 1
		all += len(questions(t, a.gives(q, key, a.tipsOf(q.call.To, 5, 30)), wire.GetChunk))
	}
	if all != int(maxChunkCalls) {
		t.Errorf("%d chunks in flight", all)
	}
}

func TestTipsWrongChunk(t *testing.T) {
	a, _, q := transfers(t, 20, 1)
	e := a.answer(q[0], make([]byte, wire.ChunkSize))
	if e = append(e, a.wait(2000)...); len(questions(t, e, wire.GetChunk)) != 0 || count[StoreChunk](e) != 0 {
		t.Errorf("%v", e)
	}
}

func TestTipsChunkBusy(t *testing.T) {
	a, _, q := transfers(t, 20, 1)
	for _, c := range q {
		a.fails(c, wire.Busy)
	}
	busy := Time(fetch.BusyRetryMs)
	if n := len(questions(t, a.wait(busy-1), wire.GetChunk)); n != 0 {
		t.Errorf("%d requests before the time", n)
	}
	if n := len(questions(t, a.wait(1), wire.GetChunk)); n != len(q) {
		t.Errorf("%d requests after it", n)
	}
	for _, st := range []wire.Status{wire.NotFound, wire.Refused} {
		a, ids, q := transfers(t, 20, 1)
		if e := append(a.fails(q[0], st), a.wait(500)...); slices.ContainsFunc(questions(t, e, wire.GetChunk), func(c question) bool {
			return c.call.To == ids[0] && slices.Contains(a.tipsOf(ids[0], 5, 20).Fragments[0].Chunks, c.Digest)
		}) {
			t.Errorf("%v: asks for chunks of the fragment again", st)
		}
	}
}

func TestTipsChunkStalls(t *testing.T) {
	stall := Time(stallMs)
	for sends, want := range map[peers.Rate]Time{1e6: stall, 4 * wire.ChunkSize / 8000.0: 8000} {
		a, ids := joins(1, 2)
		a.core.env.Config.Trusted = ids[:1]
		a.core.env.Find(ids[0]).Rate = sends
		q := questions(t, a.gives(a.begins(t), 1, a.tipsOf(ids[0], 5, 1)), wire.GetChunk, wire.GetSnapshot)
		a.gives(only(wire.GetSnapshot, q)[0], 2, a.tipsOf(ids[1], 5, 1))
		again := func(ms Time) int {
			n := 0
			for end := a.now + ms; a.now < end; {
				for _, id := range ids {
					a.core.heardOf(a.now, id)
				}
				for _, c := range questions(t, a.wait(min(100, end-a.now)), wire.GetChunk) {
					if c.call.To == ids[1] && slices.ContainsFunc(only(wire.GetChunk, q), func(o question) bool { return o.Digest == c.Digest }) {
						n++
					}
				}
			}
			return n
		}
		if n := again(want); n != 0 {
			t.Errorf("at %g bytes/ms %d chunks are asked of another within %d", sends, n, want)
		}
		if n := again(100); n == 0 {
			t.Errorf("at %g bytes/ms no chunk is asked of another after %d", sends, want)
		}
	}
}

func TestTipsManifestGivenUp(t *testing.T) {
	another := func(e []Effect) bool { return len(questions(t, e, wire.GetManifest, wire.GetSnapshot)) > 0 }
	a, _, q := transfers(t, 1, 1)
	q = only(wire.GetChunk, q)
	for i := 1; ; i++ {
		e := append(a.failsHow(q[0], errors.New("reset")), a.wait(500)...)
		a.core.heardOf(a.now, a.core.env.List[0].ID)
		if next := slices.DeleteFunc(questions(t, e, wire.GetChunk), func(c question) bool { return c.Digest != q[0].Digest }); len(next) > 0 {
			q = next
			continue
		}
		if i != int(maxChunkTries) {
			t.Errorf("given up after %d requests for one chunk", i)
		}
		break
	}
	a, ids, _ := transfers(t, 1, 1)
	for a.now < Time(progressMs) {
		a.core.heardOf(a.now, ids[0])
		if another(a.wait(100)) {
			t.Fatalf("given up after %d", a.now)
		}
	}
	got := false
	for range 30 {
		a.core.heardOf(a.now, ids[0])
		got = another(a.wait(100)) || got
	}
	if !got {
		t.Error("not given up")
	}
	a, _, q = transfers(t, 1, 1)
	for _, c := range q {
		a.fails(c, wire.NotFound)
	}
	if a.core.snapshot.stage != choosing {
		t.Error("goes on though nobody has a chunk")
	}
}

// failsHow ends a request with an error.
func (a *alone) failsHow(q question, err error) []Effect {
	a.core.Step(a.now, Answered{Call: q.call.ID, Err: err})
	return a.core.Effects()
}

func TestTipsChunksStored(t *testing.T) {
	stored := wire.Sum(specChunk(0, 0, 2))
	a, ids := joins(1)
	a.core.env.Config.Trusted = ids
	a.core.env.cfg.HasChunk = func(d wire.Digest) bool { return d == stored }
	e := a.gives(a.begins(t), 1, a.tipsOf(ids[0], 5, 2))
	for round := 0; count[Snapshot](e) == 0 && round < 10; round++ {
		for _, c := range questions(t, e, wire.GetChunk) {
			if c.Digest == stored {
				t.Fatal("asks for what is stored")
			}
			for f := range 2 {
				for i := range 2 {
					if b := specChunk(f, i, 2); wire.Sum(b) == c.Digest {
						e = append(e, a.answer(c, bytes.Clone(b))...)
					}
				}
			}
		}
	}
	if count[StoreChunk](e) != 3 || count[Snapshot](e) != 1 {
		t.Errorf("%d chunks stored, %d snapshots", count[StoreChunk](e), count[Snapshot](e))
	}
}
