package finality

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"testing"

	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// One test for each clause of gossip/wire/SPEC.md that is about finality.
func TestSpec(t *testing.T) {
	spectest.Run(t, "V", map[string]spectest.Clause{
		"V-1": specVote, "V-1.2": specVoteRefused, "V-2": specValue, "V-2.2": specValueDigest, "V-2.3": specValueRefused,
		"V-3": specCertificate, "V-3.2": specSeal, "V-4": specSeals, "V-4.2": specTables, "V-4.3": specFollows, "V-4.4": specFirst,
		"V-5": specProposer, "V-6": specOnce, "V-6.2": specOwnChain, "V-6.3": specPrecommit, "V-6.4": specLock,
		"V-6.5": spectest.All(specVouched, specNobodyVouches), "V-6.6": specOthersKnow, "V-7": specDouble,
		"V-8": spectest.All(specElected, specWindow), "V-8.2": specEvery, "V-8.3": specInvites, "V-8.4": specMarks, "V-8.5": specPoints,
	})
}

func runOf(t *testing.T, s *spectest.Spec) wire.RunID { return wire.RunID(s.Hex(t, "run")) }

func keyOfSpec(t *testing.T, s *spectest.Spec) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(s.Hex(t, "seed"))
}

// statement is W-3.
func statement(domain string, run wire.RunID, b []byte) []byte {
	return slices.Concat([]byte{byte(len(domain))}, []byte(domain), run[:], b)
}

func specVote(t *testing.T, s *spectest.Spec) {
	names := []string{"author", "phase", "height", "view", "round", "value", "proof"}
	for i, row := range s.Table(t, "vote") {
		if row[0] != names[i] {
			t.Errorf("field %d is %s", i, row[0])
		}
	}
	for _, name := range []string{"vote", "vote for none"} {
		raw := s.Hex(t, name)
		v, err := wire.OpenVote(runOf(t, s), raw)
		if err != nil {
			t.Fatal(err)
		}
		array := raw[:len(raw)-64]
		if !ed25519.Verify(v.Author[:], statement("atoll vote 1", runOf(t, s), array), raw[len(raw)-64:]) {
			t.Errorf("%s: the signature", name)
		}
		if again := wire.SignVote(keyOfSpec(t, s), runOf(t, s), v.Vote); !bytes.Equal(again.Encode(), raw) {
			t.Errorf("%s: encoded %x", name, again.Encode())
		}
	}
	v, _ := wire.OpenVote(runOf(t, s), s.Hex(t, "vote"))
	want := wire.Vote{Author: wire.PeerID(s.Hex(t, "author")), Phase: wire.Propose, Height: 300, View: 2, Round: 16, Value: wire.Digest(s.Hex(t, "value digest")), Proof: 1}
	if v.Vote != want {
		t.Errorf("%+v, want %+v", v.Vote, want)
	}
	if most := s.Number(t, "finality", "vote"); most != wire.MaxVote {
		t.Errorf("at most %d bytes, the text says %v", wire.MaxVote, most)
	}
}

func specVoteRefused(t *testing.T, s *spectest.Spec) {
	if most := s.Number(t, "finality", "view"); most != wire.MaxView {
		t.Errorf("at most view %d, the text says %v", wire.MaxView, most)
	}
	good, err := wire.OpenVote(runOf(t, s), s.Hex(t, "vote"))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(v *wire.Vote){
		"another phase":    func(v *wire.Vote) { v.Phase = 4 },
		"phase 0":          func(v *wire.Vote) { v.Phase = 0 },
		"above view":       func(v *wire.Vote) { v.View = 1<<30 + 1 },
		"without a value":  func(v *wire.Vote) { v.Phase, v.Proof, v.Value = 2, 0, wire.Digest{} },
		"without a round":  func(v *wire.Vote) { v.Phase, v.Proof, v.Round = 2, 0, 0 },
		"proposes nothing": func(v *wire.Vote) { v.Round, v.Value = 0, wire.Digest{} },
		"a prevote's":      func(v *wire.Vote) { v.Phase = 2 },
		"above its view":   func(v *wire.Vote) { v.Proof = v.View + 1 },
	} {
		v := good.Vote
		change(&v)
		if _, err := wire.OpenVote(runOf(t, s), wire.SignVote(keyOfSpec(t, s), runOf(t, s), v).Encode()); !errors.Is(err, wire.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func valueOf(t *testing.T, s *spectest.Spec) (v Value) {
	t.Helper()
	if err := wire.Unmarshal(s.Hex(t, "value"), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func specValue(t *testing.T, s *spectest.Spec) {
	names := []string{"round", "points", "voters"}
	for i, row := range s.Table(t, "value") {
		if row[0] != names[i] {
			t.Errorf("field %d is %s", i, row[0])
		}
	}
	want := Value{
		Round:  16,
		Points: []Point{{Round: 16, Chain: wire.Sum([]byte("chain"))}, {Round: 9, Chain: wire.Sum([]byte("another"))}},
		Voters: []wire.PeerID{wire.PeerID(s.Hex(t, "author"))},
	}
	if !bytes.Equal(wire.Marshal(want), s.Hex(t, "value")) || valueOf(t, s).Validate() != nil {
		t.Errorf("%x", wire.Marshal(want))
	}
}

func specValueDigest(t *testing.T, s *spectest.Spec) {
	want := wire.Sum(statement("atoll finality value 1", runOf(t, s), s.Hex(t, "value")))
	if got := valueOf(t, s).Digest(runOf(t, s)); got != want || !bytes.Equal(got[:], s.Hex(t, "value digest")) {
		t.Errorf("digest %x", got[:])
	}
}

func specValueRefused(t *testing.T, s *spectest.Spec) {
	if most := s.Number(t, "finality", "voters"); most != MaxVoters {
		t.Errorf("at most %d voters, the text says %v", MaxVoters, most)
	}
	many := make([]wire.PeerID, MaxVoters+1)
	for i := range many {
		many[i] = wire.PeerID{0, byte(i)}
	}
	for name, change := range map[string]func(v *Value){
		"round 0":             func(v *Value) { v.Round = 0 },
		"no points":           func(v *Value) { v.Points = nil },
		"too many points":     func(v *Value) { v.Points = make([]Point, wire.MaxFragments+1) },
		"a point above":       func(v *Value) { v.Points[0].Round = 17 },
		"no voters":           func(v *Value) { v.Voters = nil },
		"too many voters":     func(v *Value) { v.Voters = many },
		"a voter twice":       func(v *Value) { v.Voters = []wire.PeerID{{1}, {1}} },
		"voters not in order": func(v *Value) { v.Voters = []wire.PeerID{{2}, {1}} },
	} {
		v := valueOf(t, s)
		change(&v)
		if v.Validate() == nil {
			t.Errorf("%s: taken", name)
		}
	}
	v := valueOf(t, s)
	v.Voters = many[:MaxVoters]
	if err := v.Validate(); err != nil {
		t.Errorf("as many as may be: %v", err)
	}
}

func certificateOfSpec(t *testing.T, s *spectest.Spec) Certificate {
	t.Helper()
	c, err := Parse(s.Hex(t, "finality certificate"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func specCertificate(t *testing.T, s *spectest.Spec) {
	c := certificateOfSpec(t, s)
	if !bytes.Equal(c.Encode(), s.Hex(t, "finality certificate")) || !bytes.Equal(wire.Marshal(c.Value), s.Hex(t, "value")) {
		t.Errorf("%+v", c)
	}
	if c.Height != 0 || c.View != 0 || len(c.Seals) != 1 || c.Seals[0].Voter != 0 {
		t.Errorf("%+v", c)
	}
	if most := s.Number(t, "finality", "certificate"); most != MaxSize {
		t.Errorf("at most %d bytes, the text says %v", MaxSize, most)
	}
}

func specSeal(t *testing.T, s *spectest.Spec) {
	c := certificateOfSpec(t, s)
	vote := wire.SignVote(keyOfSpec(t, s), runOf(t, s), wire.Vote{
		Phase: 3, Height: c.Height, View: c.View, Round: c.Value.Round, Value: wire.Digest(s.Hex(t, "value digest")),
	})
	if c.Seals[0].Sig != vote.Sig {
		t.Errorf("the seal is %x, the precommit's signature %x", c.Seals[0].Sig[:], vote.Sig[:])
	}
	if err := c.Verify(runOf(t, s), nil); err != nil {
		t.Error(err)
	}
}

func specSeals(t *testing.T, _ *spectest.Spec) {
	all := keys(4)
	value := (&ledger{closed: every, voters: idsOf(all)}).value(every)
	for places, ok := range map[[4]int]bool{
		{0, 1, 2, 3}: true, {1, 2, 3, -1}: true, {0, 1, -1, -1}: false, {0, 0, 1, 2}: false, {2, 1, 0, -1}: false,
	} {
		list := slices.DeleteFunc(places[:], func(i int) bool { return i < 0 })
		if err := sealedBy(all, 0, value, list...).Verify(testRun, nil); (err == nil) != ok {
			t.Errorf("seals of %v: %v", list, err)
		}
	}
	bad := sealedBy(all, 0, value, 0, 1, 2)
	bad.Seals[1].Sig = bad.Seals[0].Sig
	if err := bad.Verify(testRun, nil); !errors.Is(err, wire.ErrSignature) {
		t.Errorf("a wrong signature: %v", err)
	}
}

func specTables(t *testing.T, _ *spectest.Spec) {
	old, next := keys(4), keys(7)
	chain := &ledger{closed: 2 * every, voters: idsOf(next)}
	first := sealedBy(next, 0, chain.value(every), 0, 1, 2, 3, 4)
	if err := first.Verify(testRun, nil); err != nil {
		t.Errorf("its own voters: %v", err)
	}
	if err := sealedBy(old, 0, chain.value(every), 0, 1, 2, 3).Verify(testRun, nil); err == nil {
		t.Error("the first one is signed by others than it lists")
	}
	chain.voters = idsOf(old)
	if err := sealedBy(next, 1, chain.value(2*every), 0, 1, 2, 3, 4).Verify(testRun, &first); err != nil {
		t.Errorf("by those who were listed before: %v", err)
	}
	if err := sealedBy(old, 1, chain.value(2*every), 0, 1, 2, 3).Verify(testRun, &first); err == nil {
		t.Error("by those whom it lists itself")
	}
}

func specFollows(t *testing.T, _ *spectest.Spec) {
	all := keys(4)
	chain := &ledger{closed: 2 * every, voters: idsOf(all)}
	first := sealedBy(all, 0, chain.value(every), 0, 1, 2)
	for name, change := range map[string]func(v *Value){
		"":               func(*Value) {},
		"the same round": func(v *Value) { *v = chain.value(every) },
		"a point below":  func(v *Value) { v.Points[1].Round = 0 },
		"fewer points":   func(v *Value) { v.Points = v.Points[:1] },
		"more points":    func(v *Value) { v.Points = append(v.Points, Point{}) },
	} {
		v := chain.value(2 * every)
		change(&v)
		if err := sealedBy(all, 1, v, 0, 1, 2).Verify(testRun, &first); (err == nil) != (name == "") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func specFirst(t *testing.T, _ *spectest.Spec) {
	all := keys(4)
	chain := &ledger{closed: 2 * every, voters: idsOf(all)}
	list := []Certificate{sealedBy(all, 0, chain.value(every), 0, 1, 2), sealedBy(all, 1, chain.value(2*every), 0, 1, 2)}
	for least, want := range map[uint32]error{0: nil, 2 * every: nil, 3 * every: ErrNotBorneOut} {
		own := *chain
		own.least = least
		if err := New(Config{Run: testRun, Every: every, StepMs: 1}, &own).Learn(0, list); !errors.Is(err, want) {
			t.Errorf("with rounds from %d on: %v, want %v", least, err, want)
		}
	}
	forged := chain.value(every)
	forged.Voters = idsOf(all[3:])
	liar := []Certificate{sealedBy(all[3:], 0, forged, 0)}
	if err := New(Config{Run: testRun, Every: every, StepMs: 1}, chain).Learn(0, liar); !errors.Is(err, ErrNotBorneOut) {
		t.Errorf("true points, and voters that nobody elected: %v", err)
	}
	own := *chain
	own.fork, own.name = 1, 1
	if err := New(Config{Run: testRun, Every: every, StepMs: 1}, &own).Learn(0, list); !errors.Is(err, ErrNotBorneOut) {
		t.Errorf("on another chain: %v", err)
	}
}

func specProposer(t *testing.T, s *spectest.Spec) {
	table := must[Table](t)(NewTable(idsOf(keys(4)))) // seeds 01 to 04
	for _, row := range s.Table(t, "proposers") {
		view, _ := strconv.Atoi(row[0])
		place, _ := strconv.Atoi(row[1])
		if got := table.Proposer(runOf(t, s), 5, uint32(view)); got != table.IDs()[place] {
			t.Errorf("view %d: %v proposes", view, got)
		}
		b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 5), uint32(view))
		digest := wire.Sum(statement("atoll proposer 1", runOf(t, s), b))
		if n := binary.BigEndian.Uint64(digest[:8]) % 4; n != uint64(place) {
			t.Errorf("view %d: place %d by the text", view, n)
		}
	}
}

// No input makes a voter sign twice: TestNetworks looks at all that it signs. Here are those most likely to.
func specOnce(t *testing.T, _ *spectest.Spec) {
	r, at := notProposing(t)
	r.tick(0)
	p := r.proposer(0)
	a, b := r.chain.value(2*every), r.chain.value(3*every)
	r.get(r.signer[p](wire.Propose, 0, a, 0))
	r.get(r.signer[p](wire.Propose, 0, b, 0))
	r.get(r.all(others(at), wire.Prevote, 0, b)...)
	r.get(r.all(others(at)[:2], wire.Precommit, 0, Value{})...)
	saved := *r.saved
	for range 20 {
		r.tick(10)
	}
	published := r.out
	r = newRig(t, at)
	r.v.Resume(&r.last, &saved)
	r.get(r.signer[p](wire.Propose, 0, b, 0))
	for range 20 {
		r.tick(10)
	}
	type place struct {
		phase wire.Phase
		view  uint32
	}
	votes := map[place]wire.Vote{}
	for _, s := range slices.Concat(published, r.out) {
		at := place{s.Phase, s.View}
		if other, has := votes[at]; s.Author == r.v.self && has && other != s.Vote {
			t.Errorf("%+v and %+v", other, s.Vote)
		} else if s.Author == r.v.self {
			votes[at] = s.Vote
		}
	}
	if len(votes) < 2 {
		t.Errorf("%d votes", len(votes))
	}
}

func specOwnChain(t *testing.T, _ *spectest.Spec) {
	t.Run("has", TestPrevotesForItsOwnChainAlone)
	t.Run("goes on", TestVotesForNothingBesideWhatIsCertified)
}

func specVouched(t *testing.T, _ *spectest.Spec) { TestVotesAfterTips(t) }

func specNobodyVouches(t *testing.T, _ *spectest.Spec) { TestNobodyVouches(t) }

func specOthersKnow(t *testing.T, _ *spectest.Spec) { TestVotesForWhatOthersKnow(t) }

func specPrecommit(t *testing.T, _ *spectest.Spec) {
	r, at := notProposing(t)
	r.tick(0)
	value := r.chain.value(2 * every)
	p := r.proposer(0)
	r.get(r.signer[p](wire.Propose, 0, value, 0))
	r.get(r.all(others(at)[:1], wire.Prevote, 0, value)...) // with its own two of four
	r.get(r.all(others(at)[1:2], wire.Prevote, 1, value)...)
	if _, any := r.own(wire.Precommit, 0); any {
		t.Error("two of four are enough, or views are not told apart")
	}
	r.get(r.all(others(at)[1:2], wire.Prevote, 0, value)...)
	r.wantOwn(wire.Precommit, 0, value.Round)
}

func specLock(t *testing.T, _ *spectest.Spec) {
	TestLock(t)
	r, at, _ := locked(t)
	other := r.chain.value(3 * every)
	view := r.viewOf(3, at)
	r.lead(at, view)
	// The proof names the view of the lock, in which enough prevoted for another value, which needs two liars.
	r.get(r.all(others(at), wire.Prevote, 0, other)...)
	r.get(r.signer[r.proposer(view)](wire.Propose, view, other, 1))
	r.wantOwn(wire.Prevote, view, other.Round)
}

func specDouble(t *testing.T, _ *spectest.Spec) {
	TestDoubleVotes(t)
	r, at := notProposing(t)
	r.tick(0)
	view := r.viewOf(1, at)
	liar := others(at)[0]
	value := r.chain.value(2 * every)
	r.get(r.signer[liar](wire.Prevote, 0, Value{}, 0), r.signer[liar](wire.Prevote, 0, value, 0))
	r.get(r.all(others(at)[1:], wire.Prevote, view, Value{})...)
	r.get(r.signer[r.proposer(view)](wire.Propose, view, value, 1))
	r.get(r.all(others(at)[1:], wire.Prevote, 0, value)...)
	r.wantOwn(wire.Prevote, view, value.Round) // what others rest on its vote counts
}

func specElected(t *testing.T, _ *spectest.Spec) {
	invite := wire.PeerID{9}
	list := []Candidate{
		{Author: wire.PeerID{4}, Deltas: 1, Invite: invite, Uses: 2},
		{Author: wire.PeerID{3}, Deltas: 2, Invite: invite, Uses: 2},
		{Author: wire.PeerID{2}, Deltas: 2, Invite: invite, Uses: 2},
		{Author: wire.PeerID{5}, Deltas: 1, Invite: wire.PeerID{8}},
	}
	if got, want := Elect(list), []wire.PeerID{{2}, {3}, {5}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	list = nil
	for i := range MaxVoters + 2 {
		list = append(list, Candidate{Author: wire.PeerID{byte(i)}, Deltas: 1 + i/MaxVoters})
	}
	got := Elect(list)
	if len(got) != MaxVoters || got[0] != (wire.PeerID{0}) || got[MaxVoters-1] != (wire.PeerID{MaxVoters + 1}) || got[MaxVoters-3] != (wire.PeerID{MaxVoters - 3}) {
		t.Errorf("%d voters: %v", len(got), got)
	}
}

func specEvery(t *testing.T, _ *spectest.Spec) {
	for union, want := range map[uint32]uint32{1: 1, 3: 1, 4: 1, 16: 4, 64: 16} {
		if got := Every(union); got != want {
			t.Errorf("with a window of %d: %d, want %d", union, got, want)
		}
	}
}

// What is folded before the last rounds elects nobody.
func specWindow(t *testing.T, _ *spectest.Spec) {
	h := NewHistory(every, 2)
	for r := uint32(1); r <= 2*every; r++ {
		for f := range 2 {
			author := wire.PeerID{1 + byte(f)}
			if r <= every {
				author = wire.PeerID{9}
			}
			feed(t, h, f, r, 0, false, author)
		}
	}
	if v, known := h.At(2 * every); !known || !slices.Equal(v.Voters, []wire.PeerID{{1}, {2}}) {
		t.Errorf("voters %v, known %v", v.Voters, known)
	}
}

func specPoints(t *testing.T, _ *spectest.Spec) {
	h := NewHistory(every, 2)
	for r := uint32(1); r <= 2*every; r++ {
		feed(t, h, 0, r, 0, false, wire.PeerID{1})
		if r <= every+1 {
			feed(t, h, 1, r, 0, r == every+1, wire.PeerID{1})
		}
	}
	v, known := h.At(2 * every)
	if want := []Point{{Round: 2 * every, Chain: chainAt(0, 2*every, 0)}, {Round: every + 1, Chain: chainAt(1, every+1, 0)}}; !known || !slices.Equal(v.Points, want) {
		t.Errorf("points %v, known %v, want %v", v.Points, known, want)
	}
}

func specMarks(t *testing.T, _ *spectest.Spec) {
	h := NewHistory(every, 1)
	for r := uint32(1); r <= 2*every+1; r++ {
		feed(t, h, 0, r, 0, false, wire.PeerID{1})
	}
	for r := range uint32(2*every + 2) {
		if _, known := h.At(r); known != (r == every || r == 2*every) {
			t.Errorf("a value of round %d: %v", r, known)
		}
	}
	all := keys(1)
	v0 := New(Config{Run: testRun, Key: all[0], Every: every, StepMs: 1}, &ledger{closed: 3 * every, voters: idsOf(all)})
	v0.Tick(0)
	if first := v0.Last(); first == nil || first.Value.Round != 3*every {
		t.Fatalf("%+v", first)
	}
	for _, e := range v0.Effects() {
		if c, is := e.(Certified); is && c.Certificate.Height == 0 && c.Certificate.Value.Round != every {
			t.Errorf("the first certificate is of round %d", c.Certificate.Value.Round)
		}
	}
}

func specInvites(t *testing.T, _ *spectest.Spec) {
	of := []Candidate{
		{Author: wire.PeerID{1}, Invite: wire.PeerID{8}, Uses: 1}, {Author: wire.PeerID{2}, Invite: wire.PeerID{8}, Uses: 1},
		{Author: wire.PeerID{2}, Invite: wire.PeerID{9}, Uses: 1}, {Author: wire.PeerID{1}, Invite: wire.PeerID{5}, Uses: 1},
	}
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}} {
		h := NewHistory(1, 1)
		var folded []Candidate
		for _, i := range order {
			folded = append(folded, of[i])
		}
		if err := h.Final(0, 1, wire.Digest{1}, folded, false); err != nil {
			t.Fatal(err)
		}
		if v, known := h.At(1); !known || !slices.Equal(v.Voters, []wire.PeerID{{1}, {2}}) {
			t.Errorf("voters %v, known %v", v.Voters, known)
		}
	}
}
