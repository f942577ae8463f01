package finality

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
)

// rig is one voter of n, at a height after the first, whose run is searched for one in which it proposes, or not, in
// view 0.
type rig struct {
	t      *testing.T
	signer []signer
	chain  *ledger
	v      *Voter
	last   Certificate
	saved  *State
	out    []wire.SignedVote // published by the voter, in order, each once
	final  []Certificate
	double []DoubleVote
}

type signer = func(phase wire.Phase, view uint32, v Value, proof uint32) wire.SignedVote

// newRig makes the voter of that place among four.
func newRig(t *testing.T, at int) *rig {
	t.Helper()
	all := keys(4)
	r := &rig{t: t, chain: &ledger{closed: 3 * every, voters: idsOf(all)}}
	for _, k := range all {
		r.signer = append(r.signer, func(phase wire.Phase, view uint32, v Value, proof uint32) wire.SignedVote {
			return signed(k, phase, 1, view, v, proof)
		})
	}
	r.last = sealedBy(all, 0, r.chain.value(every), 0, 1, 2)
	r.v = New(Config{Run: testRun, Key: all[at], Every: every, StepMs: 10}, r.chain)
	r.v.Resume(&r.last, nil)
	return r
}

// proposer is the place of the proposer of a view at height 1.
func (r *rig) proposer(view uint32) int {
	i, _ := r.v.Voters().Place(r.v.Voters().Proposer(testRun, 1, view))
	return i
}

func (r *rig) collect() {
	for _, e := range r.v.Effects() {
		switch e := e.(type) {
		case Save:
			state := e.State
			r.saved = &state
		case Publish:
			if !slices.Contains(r.out, e.Vote) {
				r.out = append(r.out, e.Vote)
			}
		case Certified:
			r.final = append(r.final, e.Certificate)
		case Doubled:
			r.double = append(r.double, e.Proof)
		}
	}
}

func (r *rig) get(votes ...wire.SignedVote) {
	for _, s := range votes {
		if err := s.Verify(testRun); err != nil {
			r.t.Fatal(err)
		}
		r.v.Receive(r.v.now, s)
		r.collect()
	}
}

func (r *rig) tick(ms int64) {
	r.v.Tick(r.v.now + ms)
	r.collect()
}

// own is what the voter voted for in a phase of a view.
func (r *rig) own(phase wire.Phase, view uint32) (v wire.Vote, any bool) {
	for _, s := range r.out {
		if s.Author == r.v.self && s.Phase == phase && s.View == view {
			return s.Vote, true
		}
	}
	return wire.Vote{}, false
}

func (r *rig) wantOwn(phase wire.Phase, view, round uint32) {
	r.t.Helper()
	if v, any := r.own(phase, view); !any || v.Round != round {
		r.t.Fatalf("%v of view %d: %+v, made is %v, want one for round %d", phase, view, v, any, round)
	}
}

// others are the places but one.
func others(at int) (list []int) {
	for i := range 4 {
		if i != at {
			list = append(list, i)
		}
	}
	return list
}

// all are the votes of some places.
func (r *rig) all(places []int, phase wire.Phase, view uint32, v Value) (list []wire.SignedVote) {
	for _, i := range places {
		list = append(list, r.signer[i](phase, view, v, 0))
	}
	return list
}

// notProposing is a voter that does not propose in view 0.
func notProposing(t *testing.T) (r *rig, at int) {
	for at = range 4 {
		if r = newRig(t, at); r.proposer(0) != at {
			return r, at
		}
	}
	t.Fatal("all propose")
	return nil, 0
}

// A proposal that the own chain agrees to is prevoted, precommitted and certified.
func TestCertifies(t *testing.T) {
	r, at := notProposing(t)
	r.tick(0)
	value := r.chain.value(2 * every)
	r.get(r.signer[r.proposer(0)](wire.Propose, 0, value, 0))
	r.wantOwn(wire.Prevote, 0, 2*every)
	r.get(r.all(others(at)[:2], wire.Prevote, 0, value)...)
	r.wantOwn(wire.Precommit, 0, 2*every)
	if r.saved == nil || r.saved.Lock.Round != 2*every || r.saved.Lock.At != 1 {
		t.Errorf("saved %+v", r.saved)
	}
	r.get(r.all(others(at)[:2], wire.Precommit, 0, value)...)
	if len(r.final) != 1 {
		t.Fatalf("%d certificates", len(r.final))
	}
	if err := r.final[0].Verify(testRun, &r.last); err != nil {
		t.Error(err)
	}
	if r.v.Height() != 2 || r.v.Last().Value.Round != 2*every {
		t.Errorf("height %d", r.v.Height())
	}
}

// What the own chain has otherwise, does not know yet, or cannot be certified any more is not prevoted.
func TestPrevotesForItsOwnChainAlone(t *testing.T) {
	for name, c := range map[string]struct {
		round  uint32
		change func(r *rig)
		want   bool // whether a vote is made at once
	}{
		"another chain":    {2 * every, func(r *rig) { r.chain.fork, r.chain.name = every+1, 1 }, true},
		"a round between":  {2*every + 1, func(*rig) {}, true},
		"certified before": {every, func(*rig) {}, true},
		"not there yet":    {4 * every, func(*rig) {}, false},
		"known no more":    {2 * every, func(r *rig) { r.chain.least = 3 * every }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := notProposing(t)
			value := r.chain.value(c.round)
			c.change(r)
			r.get(r.signer[r.proposer(0)](wire.Propose, 0, value, 0))
			r.get(r.signer[others(r.proposer(0))[0]](wire.Prevote, 0, value, 0)) // a second one: it takes part
			r.tick(0)
			if _, any := r.own(wire.Prevote, 0); any != c.want {
				t.Errorf("voted at once: %v", any)
			}
			r.tick(10)
			r.wantOwn(wire.Prevote, 0, 0)
		})
	}
}

// A fork before the last certificate: the chain of the proposal agrees, and what is certified does not.
func TestVotesForNothingBesideWhatIsCertified(t *testing.T) {
	r, _ := notProposing(t)
	r.chain.fork, r.chain.name = 1, 1
	r.tick(0)
	r.get(r.signer[r.proposer(0)](wire.Propose, 0, r.chain.value(2*every), 0))
	r.get(r.signer[others(r.proposer(0))[0]](wire.Prevote, 0, Value{}, 0))
	r.tick(10)
	r.wantOwn(wire.Prevote, 0, 0)
}

// locked is a voter that locked a value in view 0 and is in view 1.
func locked(t *testing.T) (r *rig, at int, value Value) {
	t.Helper()
	r, at = notProposing(t)
	value = r.chain.value(2 * every)
	r.tick(0)
	r.get(r.signer[r.proposer(0)](wire.Propose, 0, value, 0))
	r.get(r.all(others(at)[:2], wire.Prevote, 0, value)...)
	r.wantOwn(wire.Precommit, 0, 2*every)
	r.get(r.all(others(at)[:2], wire.Precommit, 0, Value{})...)
	r.tick(10)
	if r.v.View() != 1 {
		t.Fatalf("in view %d", r.v.View())
	}
	return r, at, value
}

// viewOf is the first view from one on in which another proposes.
func (r *rig) viewOf(from uint32, at int) uint32 {
	for r.proposer(from) == at {
		from++
	}
	return from
}

// lead brings the voter into a view.
func (r *rig) lead(at int, view uint32) {
	if view > r.v.View() {
		r.get(r.all(others(at)[:2], wire.Prevote, view, Value{})...)
	}
	if r.v.View() != view {
		r.t.Fatalf("in view %d, want %d", r.v.View(), view)
	}
}

// A lock holds against a proposal without proof, with older proof, and yields to newer.
func TestLock(t *testing.T) {
	r, at, _ := locked(t)
	other := r.chain.value(3 * every)
	view := r.viewOf(1, at)
	r.lead(at, view)
	r.get(r.signer[r.proposer(view)](wire.Propose, view, other, 0))
	r.wantOwn(wire.Prevote, view, 0)

	next := r.viewOf(view+1, at)
	r.lead(at, next)
	r.get(r.all(others(at), wire.Prevote, next-1, other)...) // newer than the lock
	r.get(r.signer[r.proposer(next)](wire.Propose, next, other, next))
	r.wantOwn(wire.Prevote, next, 3*every)

	r, at, value := locked(t)
	r.lead(at, view)
	r.get(r.signer[r.proposer(view)](wire.Propose, view, value, 0))
	r.wantOwn(wire.Prevote, view, value.Round)
}

// A proposal that names a proof waits for it.
func TestProofMustBeShown(t *testing.T) {
	r, at := notProposing(t)
	r.tick(0)
	view := r.viewOf(1, at)
	r.lead(at, view)
	value := r.chain.value(2 * every)
	r.get(r.signer[r.proposer(view)](wire.Propose, view, value, 1))
	if _, any := r.own(wire.Prevote, view); any {
		t.Fatal("voted without the proof")
	}
	r.get(r.all(others(at), wire.Prevote, 0, value)...)
	r.wantOwn(wire.Prevote, view, 2*every)
}

// The proposer proposes its newest round, and what more than two thirds prevoted for before.
func TestProposes(t *testing.T) {
	var r *rig
	at := 0
	for at = range 4 {
		if r = newRig(t, at); r.proposer(0) == at {
			break
		}
	}
	r.tick(0)
	r.wantOwn(wire.Propose, 0, 3*every)
	r.wantOwn(wire.Prevote, 0, 3*every)

	r, at, value := locked(t)
	view := uint32(1)
	for r.proposer(view) != at {
		view++
	}
	r.lead(at, view)
	r.wantOwn(wire.Propose, view, value.Round)
	p, _ := r.own(wire.Propose, view)
	if p.Proof != 1 {
		t.Errorf("proof %d, want the view of the lock", p.Proof)
	}
	shown := 0
	for _, s := range r.out {
		if s.Phase == wire.Prevote && s.View == 0 && s.Round == value.Round {
			shown++
		}
	}
	if shown < 3 {
		t.Errorf("%d of the prevotes are shown with it", shown)
	}
}

// A node that starts again goes on in its view, signs nothing for a second time, and keeps its lock.
func TestResume(t *testing.T) {
	r, at, _ := locked(t)
	saved, before := *r.saved, slices.Clone(r.out)
	r = newRig(t, at)
	r.v.Resume(&r.last, &saved)
	r.tick(0)
	if r.v.View() != saved.View || len(r.out) == 0 {
		t.Fatalf("in view %d with %v, want %d", r.v.View(), r.out, saved.View)
	}
	for _, s := range r.out {
		if !slices.Contains(before, s) {
			t.Errorf("signs %+v", s)
		}
	}
	r.lead(at, saved.View+1)
	view := r.viewOf(r.v.View(), at)
	r.lead(at, view)
	r.get(r.signer[r.proposer(view)](wire.Propose, view, r.chain.value(3*every), 0))
	r.wantOwn(wire.Prevote, view, 0)

	r = newRig(t, at)
	r.v.cfg.From = 2
	r.tick(0)
	r.tick(100)
	if len(r.out) > 0 {
		t.Errorf("a voter that may have signed before signs %v", r.out)
	}
}

// Two votes of one phase and view are told of, and count no more.
func TestDoubleVotes(t *testing.T) {
	r, at := notProposing(t)
	r.tick(0)
	value := r.chain.value(2 * every)
	p := r.proposer(0)
	liar := slices.DeleteFunc(others(at), func(i int) bool { return i == p })[0]
	r.get(r.signer[p](wire.Propose, 0, value, 0))
	r.get(r.signer[liar](wire.Prevote, 0, Value{}, 0), r.signer[liar](wire.Prevote, 0, value, 0), r.signer[liar](wire.Prevote, 0, value, 0))
	if len(r.double) != 1 {
		t.Fatalf("%d proofs", len(r.double))
	}
	if err := r.double[0].Check(testRun); err != nil {
		t.Error(err)
	}
	r.get(r.signer[p](wire.Prevote, 0, value, 0))
	if v, any := r.own(wire.Precommit, 0); any {
		t.Fatalf("its vote counts: %+v", v)
	}
	last := slices.DeleteFunc(others(at), func(i int) bool { return i == p || i == liar })[0]
	r.get(r.signer[last](wire.Prevote, 0, value, 0))
	r.wantOwn(wire.Precommit, 0, 2*every)

	forged := r.double[0]
	forged.B = forged.A
	if forged.Check(testRun) == nil {
		t.Error("one vote is no proof")
	}
	forged = r.double[0]
	forged.B.Sig[0]++
	if !errors.Is(forged.Check(testRun), wire.ErrSignature) {
		t.Error("a forged one is taken")
	}
}

// Votes of strangers, of other heights, and proposals of others than the proposer change nothing.
func TestVotesThatDoNotCount(t *testing.T) {
	r, at := notProposing(t)
	r.tick(0)
	value := r.chain.value(2 * every)
	stranger := keys(9)
	ids := r.v.Voters().IDs()
	for _, k := range stranger {
		if !slices.Contains(ids, wire.PeerIDOf(k)) {
			r.get(signed(k, wire.Prevote, 1, 0, value, 0))
		}
	}
	for _, k := range keys(4) {
		r.get(signed(k, wire.Prevote, 2, 0, value, 0))
	}
	for _, i := range others(at) {
		if i != r.proposer(0) {
			r.get(r.signer[i](wire.Propose, 0, value, 0))
		}
	}
	if len(r.out) > 0 || len(r.v.votes.kept()) > 0 {
		t.Errorf("published %v, kept views %v", r.out, r.v.votes.kept())
	}
}

// What a voter keeps is bounded, whatever views a liar names.
func TestVotesAreBounded(t *testing.T) {
	r, at := notProposing(t)
	r.tick(0)
	liar := others(at)[0]
	for view := range uint32(10_000) {
		r.get(r.signer[liar](wire.Prevote, view*97, Value{}, 0))
	}
	if n := len(r.v.votes.kept()); n > viewsAhead+1 {
		t.Errorf("votes of %d views", n)
	}
	for view := uint32(1); view < 500; view++ {
		r.get(r.all(others(at)[1:], wire.Prevote, view, Value{})...)
	}
	if n := len(r.v.votes.kept()); n > viewsBehind+viewsAhead+2 {
		t.Errorf("votes of %d views", n)
	}
}

// A node without a certificate takes those of others if its own chain goes through one of them. Others follow
// from the one before.
func TestLearn(t *testing.T) {
	all := keys(4)
	chain := &ledger{closed: 5 * every, least: 3 * every, voters: idsOf(all)}
	var list []Certificate
	for h := range uint32(4) {
		list = append(list, sealedBy(all, h, chain.value((h+1)*every), 0, 1, 3))
	}
	learn := func(chain Chain, list ...Certificate) (*Voter, error) {
		v := New(Config{Run: testRun, Every: every, StepMs: 10}, chain)
		err := v.Learn(0, list)
		return v, err
	}
	v, err := learn(chain, list...)
	if err != nil || v.Height() != 4 || len(v.Effects()) != 4 {
		t.Fatalf("height %d, %v", v.Height(), err)
	}
	if err := v.Learn(0, list[1:3]); err != nil || v.Height() != 4 {
		t.Errorf("what is known: %v, height %d", err, v.Height())
	}
	other := *chain
	other.fork, other.name = 1, 2
	if v, err := learn(&other, list...); !errors.Is(err, ErrNotBorneOut) || v.Height() != 0 {
		t.Errorf("on another chain: %v, height %d", err, v.Height())
	}
	if _, err := learn(chain, list[:2]...); !errors.Is(err, ErrNotBorneOut) {
		t.Errorf("of rounds that are not known: %v", err)
	}
	if _, err := learn(chain, list[1:]...); !errors.Is(err, wire.ErrInvalid) {
		t.Errorf("without the first: %v", err)
	}
	weak := slices.Clone(list)
	weak[2] = sealedBy(all, 2, weak[2].Value, 0, 1)
	if v, err := learn(chain, weak...); err == nil || v.Height() != 0 {
		t.Errorf("two of four signed: %v, height %d", err, v.Height())
	}
}

// Before the first certificate a node may take another chain, which has other voters. It then counts their votes, and
// signs nothing twice.
func TestOtherFirstVoters(t *testing.T) {
	all := keys(7)
	chain := &ledger{closed: every, voters: idsOf(all[:4])}
	v := New(Config{Run: testRun, Key: all[0], Every: every, StepMs: 10}, chain)
	v.Tick(0)
	v.Tick(10)
	before := v.state.Mine
	if len(before) == 0 {
		t.Fatal("no vote")
	}
	chain.voters = idsOf(all)
	value := chain.value(every)
	v.Tick(11)
	if v.Voters().Len() != 7 || !slices.Equal(v.state.Mine, before) {
		t.Fatalf("%d voters, votes %v", v.Voters().Len(), v.state.Mine)
	}
	for _, k := range all[2:] {
		v.Receive(12, signed(k, wire.Precommit, 0, 0, value, 0))
	}
	if v.Height() != 1 || v.Last().Verify(testRun, nil) != nil {
		t.Errorf("height %d", v.Height())
	}
}

// A node that is no voter any more says nothing.
func TestNoVoterAnyMore(t *testing.T) {
	all := keys(7)
	chain := &ledger{closed: every, voters: idsOf(all[:4])}
	v := New(Config{Run: testRun, Key: all[0], Every: every, StepMs: 10}, chain)
	v.Tick(0)
	chain.voters = idsOf(all[1:])
	v.Tick(1)
	v.Effects()
	for now := Time(2); now < 1000; now++ {
		v.Tick(now)
	}
	if out := v.Effects(); len(out) > 0 {
		t.Errorf("%v", out)
	}
}

func TestConfig(t *testing.T) {
	good := Config{Every: 1, StepMs: 1}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for field, c := range map[string]Config{"Every": {StepMs: 1}, "StepMs": {Every: 1}} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Who began with tips of later rounds than the newest certificate's votes once others, one of them honest, vote for a
// value of its own chain: it goes on from the certificate, as theirs does.
func TestVotesAfterTips(t *testing.T) {
	r, _ := notProposing(t)
	r.chain.least = 2 * every
	r.tick(0)
	value, first := r.chain.value(2*every), r.proposer(0)
	r.get(r.signer[first](wire.Propose, 0, value, 0))
	r.get(r.signer[first](wire.Prevote, 0, value, 0))
	if v, any := r.own(wire.Prevote, 0); any || r.v.Bears() != wire.BearsUnknown {
		t.Fatalf("voted by the word of one of four: %+v, %v", v, r.v.Bears())
	}
	second := others(first)
	for _, i := range second {
		if wire.PeerIDOf(keys(4)[i]) != r.v.self {
			r.get(r.signer[i](wire.Prevote, 0, value, 0))
			break
		}
	}
	r.wantOwn(wire.Prevote, 0, 2*every)
	if r.v.Bears() != wire.BearsYes {
		t.Errorf("bears %v", r.v.Bears())
	}
}

// Votes for another chain than the own one vouch for nothing, nor do those of who voted twice.
func TestNobodyVouches(t *testing.T) {
	for name, change := range map[string]func(r *rig, at int){
		"another chain": func(r *rig, at int) {
			value := r.chain.value(2 * every)
			r.chain.fork, r.chain.name = every+1, 1
			r.get(r.all(others(at)[:2], wire.Prevote, 1, value)...)
		},
		"one that lies": func(r *rig, at int) {
			r.get(r.all(others(at)[:2], wire.Prevote, 1, r.chain.value(2*every))...)
			r.get(r.all(others(at)[:1], wire.Prevote, 1, r.chain.value(3*every))...)
		},
		"votes for none": func(r *rig, at int) { r.get(r.all(others(at), wire.Prevote, 1, Value{})...) },
	} {
		r, at := notProposing(t)
		r.chain.least = 2 * every
		change(r, at)
		if r.v.Bears() != wire.BearsUnknown {
			t.Errorf("%s: bears %v", name, r.v.Bears())
		}
	}
}

// A value that more than two thirds prevoted for is voted for by who began too late to know it, and by nobody who may
// know it yet, or whose chain is another one.
func TestVotesForWhatOthersKnow(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *rig)
		want   uint32
	}{
		"it took tips":  {func(r *rig) { r.chain.least = 3 * every }, 2 * every},
		"it is behind":  {func(r *rig) { r.chain.closed = 2*every - 1 }, 0},
		"another chain": {func(r *rig) { r.chain.fork, r.chain.name = every+1, 1 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, at := notProposing(t)
			value := r.chain.value(2 * every)
			c.change(r)
			r.tick(0)
			view := r.viewOf(1, at)
			r.v.enter(view)
			r.get(r.all(others(at), wire.Prevote, 0, value)...)
			r.get(r.signer[r.proposer(view)](wire.Propose, view, value, 1))
			r.tick(1000)
			r.wantOwn(wire.Prevote, view, c.want)
			if c.want == 0 {
				return
			}
			r.get(r.all(others(at)[:2], wire.Prevote, view, value)...)
			r.wantOwn(wire.Precommit, view, c.want)
		})
	}
}
