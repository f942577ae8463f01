package gossip

import (
	"errors"
	"math"
	"slices"
	"testing"

	"atoll/gossip/finality"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

func TestSpecVotes(t *testing.T) {
	spectest.Run(t, "Q", map[string]spectest.Clause{
		"Q-1": specVotesDurable, "Q-1.2": specVotesOnce, "Q-2": specVotesAsked, "Q-2.2": specVotesGiven, "Q-2.3": specVotesAskedAstray,
		"Q-3": specFinalsAsked, "Q-3.2": specFinalsOfOthers, "Q-3.3": specFinalsVouched, "Q-4": specVotesPassed, "Q-5": specVotesAfterLoss,
		"Q-6": specCertifiedWins, "Q-6.2": specCertificatesAwaited, "Q-6.3": specCertifiedStays, "Q-6.4": specUncertifiedTakes, "Q-6.5": specCertificatesSilent, "Q-7": specCertifiedDonor,
	})
}

// finalChain is the own chain as votes see it: final up to a round, and perhaps another one than others'.
type finalChain struct {
	final  uint32
	other  bool
	voters []wire.PeerID
}

const finalEvery = 4

func (c *finalChain) Newest() uint32 { return c.final - c.final%finalEvery }

func (c *finalChain) At(round uint32) (finality.Value, bool) {
	v := c.value(round)
	if c.other {
		v.Points = []finality.Point{{Round: round}, {Round: round}}
	}
	return v, round > 0 && round <= c.final
}

func (c *finalChain) value(round uint32) finality.Value {
	p := finality.Point{Round: round, Chain: wire.Sum([]byte{byte(round)})}
	return finality.Value{Round: round, Points: []finality.Point{p, p}, Voters: c.voters}
}

func (c *finalChain) Holds(points []finality.Point) (yes, known bool) {
	return !c.other, points[0].Round <= c.final
}

// votersRig is a core that is one of four voters, with their chain.
type votersRig struct {
	*alone
	votes *finalChain
	peers []byte
}

// voterKeys are those of the voters: testKey(0), the core's own, and three more.
var voterKeys = []byte{0, 1, 2, 3}

func newVoters(change func(f *Finality), peers ...byte) *votersRig {
	a := &alone{run: wire.RunID{3}}
	a.chain = newFakeChain(a.run, 2)
	r := &votersRig{alone: a, votes: &finalChain{final: 2 * finalEvery}, peers: peers}
	for _, k := range voterKeys {
		r.votes.voters = append(r.votes.voters, wire.PeerIDOf(testKey(int(k))))
	}
	slices.SortFunc(r.votes.voters, wire.PeerID.Compare)
	f := &Finality{Chain: r.votes, Every: finalEvery, StepMs: 1000}
	if change != nil {
		change(f)
	}
	key := testKey(0)
	a.core = New(Config{Self: wire.PeerIDOf(key), Key: key, Run: a.run, BeatMinMs: 1000, Finality: f}, a.chain)
	a.core.SetSelf(0, SelfState{State: wire.Training})
	for _, id := range peers {
		a.up(id)
		a.told(id, nil)
	}
	return r
}

func (r *votersRig) later(ms Time) []Effect { return r.wait(ms, r.peers...) }

// votesIn are the votes that effects publish.
func (r *votersRig) votesIn(t testing.TB, effects []Effect) (all []wire.SignedVote) {
	t.Helper()
	for _, p := range find[Publish](effects) {
		m, err := wire.Open(r.run, p.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if m.Vote != nil {
			all = append(all, *m.Vote)
		}
	}
	return all
}

func (r *votersRig) saved(err error) []Effect {
	r.core.VotesSaved(r.now, err)
	return r.core.Effects()
}

// certificate is one of a height, sealed by three voters.
func (r *votersRig) certificate(height, round uint32) finality.Certificate {
	c := finality.Certificate{Height: height, Value: r.votes.value(round)}
	for place, id := range r.votes.voters {
		for _, k := range voterKeys[1:] {
			if key := testKey(int(k)); wire.PeerIDOf(key) == id {
				s := wire.SignVote(key, r.run, wire.Vote{Phase: wire.Precommit, Height: height, Round: round, Value: c.Value.Digest(r.run)})
				c.Seals = append(c.Seals, finality.Seal{Voter: uint16(place), Sig: s.Sig})
			}
		}
	}
	return c
}

func specVotesDurable(t *testing.T, _ *spectest.Spec) {
	r := newVoters(nil, 1)
	e := r.later(3000)
	saves := find[SaveVotes](e)
	if len(saves) != 1 || saves[0].State == nil || len(r.votesIn(t, e)) > 0 {
		t.Fatalf("%d states to save, %d votes left before", len(saves), len(r.votesIn(t, e)))
	}
	if e := r.saved(errors.New("no room")); len(r.votesIn(t, e)) > 0 {
		t.Error("a vote leaves that could not be saved")
	}
	e = r.later(3000)
	if again := find[SaveVotes](e); len(again) != 1 || again[0].State == nil || len(r.votesIn(t, e)) > 0 {
		t.Fatalf("%d states to save after an error", len(again))
	}
	if votes := r.votesIn(t, r.saved(nil)); len(votes) == 0 {
		t.Error("no vote leaves once it is durable")
	}
}

func specVotesOnce(t *testing.T, _ *spectest.Spec) {
	r := newVoters(nil, 1)
	times := map[wire.Vote]int{}
	for range 200 {
		e := r.later(100)
		if len(find[SaveVotes](e)) > 0 {
			e = append(e, r.saved(nil)...)
		}
		for _, s := range r.votesIn(t, e) {
			times[s.Vote]++
		}
	}
	if len(times) == 0 {
		t.Error("no votes")
	}
	for v, n := range times {
		if n != 1 {
			t.Errorf("%+v is sent %d times", v, n)
		}
	}
}

func specVotesAsked(t *testing.T, _ *spectest.Spec) {
	r := newVoters(nil, 1, 2)
	var to []byte
	var last question
	for range 60 {
		e := r.later(100)
		if len(find[SaveVotes](e)) > 0 {
			e = append(e, r.saved(nil)...)
		}
		for _, q := range questions(t, e, wire.GetVotes) {
			to, last = append(to, q.to), q
		}
	}
	if len(to) < 4 || len(to) > 6 || to[0] == to[1] || to[0] != to[2] {
		t.Fatalf("asks %v in six steps", to)
	}
	if last.Height != 0 || len(last.Known) == 0 {
		t.Errorf("asks for %+v", last.Request)
	}
	s := wire.SignVote(testKey(1), r.run, wire.Vote{Phase: wire.Precommit, View: 1})
	r.answer(last, wire.EncodeVotes([]wire.SignedVote{s}))
	if got := r.core.finals.voter.Votes(100, func(o wire.SignedVote) bool { return o != s }); len(got) != 1 {
		t.Errorf("the vote is not taken: %+v", got)
	}
	s.Sig[0]++
	s.View = 2
	if e := r.answer(questions(t, r.later(2000), wire.GetVotes)[0], wire.EncodeVotes([]wire.SignedVote{s})); count[Misbehaved](e) == 0 {
		t.Error("a vote that nobody signed is no fault")
	}
}

// A voter that took tips, and whose chain says nothing of the newest certificate, asks though it votes for nothing; one whose
// chain goes through it waits until there is something to vote on.
func specVotesAskedAstray(t *testing.T, _ *spectest.Spec) {
	for final, asks := range map[uint32]bool{finalEvery: true, 2 * finalEvery: false} {
		r := newVoters(nil, 1)
		c := r.certificate(0, 2*finalEvery)
		r = newVoters(func(f *Finality) { f.Last, f.Shorts = &c, []uint64{ShortOf(wire.RunID{3}, c)} }, 1)
		r.votes.final = final
		r.told(1, func(b *wire.Beat) { b.Certified, b.Certificate = 1, ShortOf(r.run, c) })
		var asked []question
		for range 30 {
			asked = append(asked, questions(t, r.later(100), wire.GetVotes)...)
		}
		if len(asked) > 0 != asks || asks && asked[0].Height != 1 {
			t.Fatalf("final up to round %d: asks %+v", final, asked)
		}
		if !asks {
			continue
		}
		s := wire.SignVote(testKey(1), r.run, wire.Vote{Phase: wire.Prevote, Height: 1})
		other := wire.SignVote(testKey(2), r.run, wire.Vote{Phase: wire.Prevote, Height: 1})
		r.answer(asked[len(asked)-1], wire.EncodeVotes([]wire.SignedVote{s, other}))
		if r.later(3000); !r.core.finals.voter.Voting() {
			t.Error("two of four vote, and it does not")
		}
	}
}

// asks has a peer ask for votes, and returns those that it is given.
func (r *votersRig) asks(t *testing.T, q wire.Request) []wire.SignedVote {
	t.Helper()
	r.core.Step(r.now, Requested{Handle: 1, From: wire.PeerID{1}, Request: q.Encode()})
	replies := find[Reply](r.core.Effects())
	body, err := wire.OpenResponse(replies[0].Response, q.Kind.MaxResponse())
	if err != nil {
		t.Fatal(err)
	}
	votes, err := wire.DecodeVotes(body)
	if err != nil {
		t.Fatal(err)
	}
	return votes
}

func specVotesGiven(t *testing.T, _ *spectest.Spec) {
	r := newVoters(nil, 1)
	r.later(3000)
	q := wire.Request{Kind: wire.GetVotes}
	if votes := r.asks(t, q); len(votes) != 0 {
		t.Errorf("gives %+v before it is durable", votes)
	}
	r.saved(nil)
	votes := r.asks(t, q)
	if len(votes) == 0 {
		t.Fatal("gives nothing")
	}
	q.Known = []uint64{votes[0].Short()}
	if again := r.asks(t, q); slices.Contains(again, votes[0]) || len(again) != len(votes)-1 {
		t.Errorf("gives %+v again", again)
	}
	q.Height = 1
	if other := r.asks(t, q); len(other) > 0 {
		t.Errorf("gives %+v of another height", other)
	}
}

func specFinalsAsked(t *testing.T, _ *spectest.Spec) {
	r := newVoters(nil, 1, 2)
	if q := questions(t, r.later(2000), wire.GetFinals); len(q) > 0 {
		t.Errorf("asks %+v where nobody has any", q)
	}
	r.told(2, func(b *wire.Beat) { b.Certified, b.Certificate = 2, 7 })
	q := questions(t, r.later(1000), wire.GetFinals)
	if len(q) != 1 || q[0].to != 2 || q[0].Height != 0 {
		t.Fatalf("asks %+v", q)
	}
	e := r.answer(q[0], wire.EncodeFinals([][]byte{r.certificate(0, finalEvery).Encode(), r.certificate(1, 2*finalEvery).Encode()}))
	for range 3 {
		e = append(e, r.later(1000)...)
		e = append(e, r.saved(nil)...)
	}
	if n := count[Certified](e); n != 2 {
		t.Errorf("%d certificates are taken", n)
	}
	beats := r.beatsIn(t, append(e, r.later(5000)...))
	if last := beats[len(beats)-1]; last.Certified != 2 || last.BorneOut != wire.BearsYes {
		t.Errorf("beats with %d certificates, borne out %d", last.Certified, last.BorneOut)
	}
}

func specFinalsOfOthers(t *testing.T, _ *spectest.Spec) {
	r := newVoters(nil, 1)
	r.votes.other = true
	r.told(1, func(b *wire.Beat) { b.Certified, b.Certificate = 1, 7 })
	q := questions(t, r.later(1000), wire.GetFinals)
	e := r.answer(q[0], wire.EncodeFinals([][]byte{r.certificate(0, finalEvery).Encode()}))
	e = append(e, r.later(20_000)...)
	if count[Misbehaved](e) > 0 || count[Certified](e) > 0 {
		t.Error("certificates of another chain are taken, or a fault")
	}
	bad := r.certificate(0, finalEvery)
	bad.Seals = bad.Seals[:1]
	r.told(1, func(b *wire.Beat) { b.Certified, b.Certificate = 1, 8 })
	q = questions(t, r.later(15_000), wire.GetFinals)
	if e := r.answer(q[0], wire.EncodeFinals([][]byte{bad.Encode()})); count[Misbehaved](e) > 0 {
		t.Error("a seal that is missing is a fault")
	}
	if q := questions(t, r.later(15_000), wire.GetFinals); len(q) > 0 {
		t.Errorf("asks the same peer for the same ones again: %+v", q)
	}
	r.told(1, func(b *wire.Beat) { b.Certified, b.Certificate = 1, 9 })
	q = questions(t, r.later(15_000), wire.GetFinals)
	if e := r.answer(q[0], wire.EncodeFinals([][]byte{{0x80}})); count[Misbehaved](e) == 0 {
		t.Error("what is no certificate is no fault")
	}
}

// specFinalsVouched: of three peers whose deltas were folded all must say it, of four three, and nobody else counts.
func specFinalsVouched(t *testing.T, _ *spectest.Spec) {
	for name, c := range map[string]struct {
		folded, say []byte
		want        bool
	}{
		"all of one":          {[]byte{1}, []byte{1}, true},
		"all of three":        {[]byte{1, 2, 3}, []byte{1, 2, 3}, true},
		"two of three":        {[]byte{1, 2, 3}, []byte{1, 2}, false},
		"three of four":       {[]byte{1, 2, 3, 4}, []byte{1, 2, 3}, true},
		"peers without any":   {nil, []byte{1, 2, 3, 4}, false},
		"one of one, and all": {[]byte{1}, []byte{2, 3, 4}, false},
	} {
		r := newVoters(nil, 1, 2, 3, 4)
		r.votes.final, r.chain.contributed = 0, map[wire.PeerID]bool{}
		for _, id := range c.folded {
			r.chain.contributed[wire.PeerID{id}] = true
		}
		list := []finality.Certificate{r.certificate(0, finalEvery), r.certificate(1, 2*finalEvery)}
		for _, id := range c.say {
			r.told(id, func(b *wire.Beat) {
				b.Certified, b.Certificate, b.BorneOut = 2, ShortOf(r.run, list[1]), wire.BearsYes
			})
		}
		q := questions(t, r.later(1000), wire.GetFinals)
		e := r.answer(q[0], wire.EncodeFinals([][]byte{list[0].Encode(), list[1].Encode()}))
		e = append(e, r.later(1000)...)
		e = append(e, r.saved(nil)...)
		if n := count[Certified](e); n != map[bool]int{true: 2}[c.want] {
			t.Errorf("%s: %d certificates are taken", name, n)
		}
	}
}

// A node that joins a long run keeps few of its certificates while it cannot take them, and then takes all.
func TestFinalsOfALongRun(t *testing.T) {
	const heights = 3*maxPendingFinals + 7
	r := newVoters(nil, 1)
	r.votes.final = 0
	var list [][]byte
	for h := range uint32(heights) {
		list = append(list, r.certificate(h, (h+1)*finalEvery).Encode())
	}
	r.told(1, func(b *wire.Beat) { b.Certified, b.Certificate = heights, 7 })
	taken, asked := 0, 0
	serve := func(done func(v FinalView) bool) {
		t.Helper()
		for began := r.now; r.now < began+600_000; {
			e := r.later(250)
			e = append(e, r.saved(nil)...)
			for _, q := range questions(t, e, wire.GetFinals) {
				asked++
				from := int(q.Height)
				e = append(e, r.answer(q, wire.EncodeFinals(list[from:min(from+wire.MaxFinals, heights)]))...)
			}
			taken += count[Certified](e)
			r.core.Sizes(func(what string, n, most int) {
				if n > most {
					t.Fatalf("%d %s, at most %d", n, what, most)
				}
			})
			if v, _ := r.core.Finals(); done(v) {
				return
			}
		}
		v, _ := r.core.Finals()
		t.Fatalf("after %d requests: %+v", asked, v)
	}
	serve(func(v FinalView) bool { return v.Pending == heights })
	if taken > 0 || len(r.core.finals.fetch.newest) != maxPendingFinals {
		t.Errorf("%d taken before the own chain tells, %d kept", taken, len(r.core.finals.fetch.newest))
	}
	r.votes.final = (heights - 1) * finalEvery // it tells of the last but one
	serve(func(v FinalView) bool { return v.Certified == heights })
	if taken != heights || r.core.finals.fetch.first != nil {
		t.Errorf("%d of %d certificates are taken", taken, heights)
	}
}

// specVotesPassed: the gate is told who votes.
func specVotesPassed(t *testing.T, _ *spectest.Spec) {
	gate := finality.NewGate(wire.PeerIDOf(testKey(0)), 1000)
	r := newVoters(func(f *Finality) { f.Gate = gate }, 1)
	r.later(1000)
	vote := func(author wire.PeerID, height uint32) wire.Vote {
		return wire.Vote{Author: author, Phase: wire.Prevote, Height: height}
	}
	voter := wire.PeerIDOf(testKey(1))
	if !gate.Pass(r.now, vote(voter, 0)) || gate.Pass(r.now, vote(wire.PeerID{99}, 0)) {
		t.Error("a voter does not pass, or another one does")
	}
	passed := 0
	for range 100 {
		if gate.Pass(r.now, vote(voter, 0)) {
			passed++
		}
	}
	if passed > 20 {
		t.Errorf("%d of 100 votes of one voter pass at once", passed)
	}
	r.told(1, func(b *wire.Beat) { b.Certified, b.Certificate = 1, 7 })
	r.answer(questions(t, r.later(1000), wire.GetFinals)[0], wire.EncodeFinals([][]byte{r.certificate(0, finalEvery).Encode()}))
	if r.now += 100_000; gate.Pass(r.now, vote(voter, 0)) || !gate.Pass(r.now, vote(voter, 1)) {
		t.Error("a vote of a height that is over passes, or one of the next does not")
	}
}

func specVotesAfterLoss(t *testing.T, _ *spectest.Spec) {
	r := newVoters(func(f *Finality) { f.Abstain = true }, 1)
	s := wire.SignVote(testKey(1), r.run, wire.Vote{Phase: wire.Prevote})
	r.core.Step(r.now, Received{From: wire.PeerID{1}, Message: wire.Message{Vote: &s}})
	if e := r.later(5000); count[SaveVotes](e) > 0 {
		t.Error("signs before it may")
	}
	r.told(1, func(b *wire.Beat) { b.Certified, b.Certificate = 1, 7 })
	r.core.VoteFrom(r.now)
	q := questions(t, r.later(1000), wire.GetFinals)
	e := append(r.answer(q[0], wire.EncodeFinals([][]byte{r.certificate(0, finalEvery).Encode()})), r.saved(nil)...)
	if e = append(e, r.later(5000)...); len(r.votesIn(t, e)) > 0 {
		t.Error("signs at the height that was under way")
	}
	r.votes.final = 4 * finalEvery
	r.told(1, func(b *wire.Beat) { b.Certified, b.Certificate = 2, 8 })
	q = questions(t, r.later(1000), wire.GetFinals)
	e = append(r.answer(q[0], wire.EncodeFinals([][]byte{r.certificate(1, 2*finalEvery).Encode()})), r.saved(nil)...)
	if e = append(e, r.later(5000)...); count[SaveVotes](e) == 0 {
		t.Error("signs nothing at the next height")
	}
}

// One that claims any number of certificates silences nobody for long.
func TestVoteFromDespiteAClaim(t *testing.T) {
	for claim, want := range map[uint32]uint32{0: 7, 6: 7, 7: 7, 8: 8, 1 << 31: 9, math.MaxUint32: 9} {
		r := newVoters(func(f *Finality) { f.Abstain = true }, 1, 2, 3)
		for id, n := range map[byte]uint32{1: 6, 2: 7, 3: claim} {
			r.told(id, func(b *wire.Beat) {
				if n > 0 {
					b.Certified, b.Certificate = n, 9
				}
			})
		}
		if got := r.core.finals.underWay(); got != want {
			t.Errorf("with a claim of %d: %d, want %d", claim, got, want)
		}
	}
	r := newVoters(nil, 1)
	r.told(1, func(b *wire.Beat) { b.Certified, b.Certificate = math.MaxUint32, 9 })
	if got := r.core.finals.underWay(); got == math.MaxUint32 {
		t.Error("there is no height after it")
	}
}

// certifiedSides are two nodes whose chains part below both bases, and what their beats say of certificates.
func certifiedSides(t *testing.T, mine, theirs func(b *wire.Beat)) (a, b side) {
	t.Helper()
	a, b = newSide(t, parseChain(t, "2: 1 2 3 4")), newSide(t, parseChain(t, "2: 1 6 7 8"))
	for s, change := range map[*side]func(*wire.Beat){&a: mine, &b: theirs} {
		r := newVoters(nil)
		s.repair.finals = &r.core.finals
		s.repair.finals.shorts = []uint64{11, 12, 13}
		change(s.repair.beats.said)
	}
	return a, b
}

func certifies(n uint32, short uint64, bears wire.Bears) func(b *wire.Beat) {
	return func(b *wire.Beat) { b.Certified, b.Certificate, b.BorneOut = n, short, bears }
}

func specCertifiedWins(t *testing.T, _ *spectest.Spec) {
	for _, folded := range []uint64{1, 1 << 30} { // whatever was folded
		a, b := certifiedSides(t, certifies(3, 13, wire.BearsYes), certifies(3, 13, wire.BearsNo))
		a.repair.beats.said.Folded = folded
		if ab, ba := courseOf(a, b, nil), courseOf(b, a, nil); ab != "hold" || ba != "take" {
			t.Errorf("the certified side: %s, the other one: %s", ab, ba)
		}
	}
}

func specCertificatesAwaited(t *testing.T, _ *spectest.Spec) {
	a, b := certifiedSides(t, certifies(3, 13, wire.BearsYes), certifies(2, 12, wire.BearsYes))
	if ab, ba := courseOf(a, b, nil), courseOf(b, a, nil); ab != "hold" || ba != "hold" {
		t.Errorf("while one has yet to fetch one: %s and %s", ab, ba)
	}
}

func specCertificatesSilent(t *testing.T, _ *spectest.Spec) {
	none := func(*wire.Beat) {}
	a, b := certifiedSides(t, none, none)
	wantA, wantB := courseOf(a, b, nil), courseOf(b, a, nil)
	for name, c := range map[string][2]func(*wire.Beat){
		"one, not gone through": {certifies(3, 13, wire.BearsNo), none},
		"none through theirs":   {certifies(3, 13, wire.BearsNo), certifies(3, 99, wire.BearsNo)},
		"of other groups":       {certifies(3, 13, wire.BearsYes), certifies(3, 99, wire.BearsNo)},
		"fewer of other ones":   {certifies(3, 13, wire.BearsYes), certifies(2, 99, wire.BearsNo)},
		"both go through it":    {certifies(3, 13, wire.BearsYes), certifies(3, 13, wire.BearsYes)},
		"neither does":          {certifies(3, 13, wire.BearsNo), certifies(3, 13, wire.BearsNo)},
		"one cannot tell":       {certifies(3, 13, wire.BearsYes), certifies(3, 13, wire.BearsUnknown)},
	} {
		a, b := certifiedSides(t, c[0], c[1])
		gotA := courseOf(a, b, nil)
		b.compares(a)
		p := b.env.peers.find(wire.PeerID{1})
		p.finals = finalsPeer{any: true, other: p.beat.Certificate}
		if gotB := courseOf(b, a, nil); gotA != wantA || gotB != wantB {
			t.Errorf("%s: %s and %s, without certificates %s and %s", name, gotA, gotB, wantA, wantB)
		}
	}
}

func specCertifiedStays(t *testing.T, _ *spectest.Spec) {
	a, b := certifiedSides(t, certifies(3, 13, wire.BearsYes), func(*wire.Beat) {})
	a.repair.beats.said.Folded = 1
	if got := courseOf(a, b, nil); got != "hold" {
		t.Errorf("beside one without: %s", got)
	}
}

// A node that joined since the last certificate keeps what it has beside one that slept, and the other way round.
func TestWhoHasNoCertificateYet(t *testing.T) {
	none := func(*wire.Beat) {}
	for _, chains := range [][2]string{{"0: 1 1", "3: 1 1 1 1"}, {"0: 1 1 1 1", "0: 1 1 1"}} {
		for _, certified := range []bool{true, false} {
			sides := func(of func(*wire.Beat)) (string, string) {
				mine, theirs := of, none
				if !certified {
					mine, theirs = none, of
				}
				a, b := newSide(t, parseChain(t, chains[0])), newSide(t, parseChain(t, chains[1]))
				for s, change := range map[*side]func(*wire.Beat){&a: mine, &b: theirs} {
					r := newVoters(nil)
					s.repair.finals = &r.core.finals
					s.repair.finals.shorts = []uint64{11, 12, 13}
					change(s.repair.beats.said)
				}
				return courseOf(a, b, nil), courseOf(b, a, nil)
			}
			wantA, wantB := sides(none)
			gotA, gotB := sides(certifies(3, 13, wire.BearsYes))
			if gotA != wantA || gotB != wantB {
				t.Errorf("%v, the first certified %v: %s and %s, without certificates %s and %s", chains, certified, gotA, gotB, wantA, wantB)
			}
		}
	}
}

func specUncertifiedTakes(t *testing.T, _ *spectest.Spec) {
	a, b := certifiedSides(t, certifies(3, 13, wire.BearsYes), func(*wire.Beat) {})
	a.repair.beats.said.Folded = 1
	if got := courseOf(b, a, nil); got != "take" {
		t.Errorf("beside a certified one: %s", got)
	}
}

func specCertifiedDonor(t *testing.T, _ *spectest.Spec) {
	a := specAlone(1, 2, 3)
	a.told(1, func(b *wire.Beat) { b.Folded = 900 })
	a.told(2, func(b *wire.Beat) { b.Folded, b.Certified, b.Certificate, b.BorneOut = 500, 5, 7, wire.BearsYes })
	a.told(3, func(b *wire.Beat) { b.Folded, b.Certified, b.Certificate, b.BorneOut = 700, 9, 7, wire.BearsNo })
	if p := a.core.snapshot.best(); p.id != (wire.PeerID{2}) {
		t.Errorf("asks %v first", p.id)
	}
	a.told(3, func(b *wire.Beat) { b.Folded, b.Certified, b.Certificate, b.BorneOut = 100, 6, 7, wire.BearsYes })
	if p := a.core.snapshot.best(); p.id != (wire.PeerID{3}) {
		t.Errorf("then asks %v first", p.id)
	}
}
