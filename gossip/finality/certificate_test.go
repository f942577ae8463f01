package finality

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

// What is changed of a certificate does not verify.
func TestVerify(t *testing.T) {
	all := keys(7)
	chain := &ledger{closed: 3 * every, voters: idsOf(all)}
	first := sealedBy(all, 0, chain.value(every), 0, 1, 2, 3, 6)
	good := func() Certificate { return sealedBy(all, 1, chain.value(2*every), 0, 2, 3, 4, 5) }
	if err := first.Verify(testRun, nil); err != nil {
		t.Fatal(err)
	}
	if err := good().Verify(testRun, &first); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(c *Certificate)
		want   error
	}{
		"too few":          {func(c *Certificate) { c.Seals = c.Seals[:4] }, wire.ErrInvalid},
		"one twice":        {func(c *Certificate) { c.Seals[1] = c.Seals[0] }, wire.ErrInvalid},
		"another's":        {func(c *Certificate) { c.Seals[0].Voter = 1 }, wire.ErrSignature},
		"of nobody":        {func(c *Certificate) { c.Seals[4].Voter = 7 }, wire.ErrInvalid},
		"forged":           {func(c *Certificate) { c.Seals[2].Sig[3]++ }, wire.ErrSignature},
		"another view":     {func(c *Certificate) { c.View++ }, wire.ErrSignature},
		"another height":   {func(c *Certificate) { c.Height++ }, wire.ErrInvalid},
		"another chain":    {func(c *Certificate) { c.Value.Points[0].Chain[0]++ }, wire.ErrSignature},
		"other voters":     {func(c *Certificate) { c.Value.Voters = c.Value.Voters[1:] }, wire.ErrSignature},
		"voters unsorted":  {func(c *Certificate) { slices.Reverse(c.Value.Voters) }, wire.ErrInvalid},
		"no voters":        {func(c *Certificate) { c.Value.Voters = nil }, wire.ErrSize},
		"no fragments":     {func(c *Certificate) { c.Value.Points = nil }, wire.ErrSize},
		"round 0":          {func(c *Certificate) { c.Value.Round = 0 }, wire.ErrInvalid},
		"no seals":         {func(c *Certificate) { c.Seals = nil }, wire.ErrSize},
		"fewer fragments":  {func(c *Certificate) { c.Value.Points = c.Value.Points[:1] }, wire.ErrSize},
		"above its round":  {func(c *Certificate) { c.Value.Points[0].Round = c.Value.Round + 1 }, wire.ErrInvalid},
		"a fragment again": {func(c *Certificate) { c.Value.Points[1].Round = 0 }, wire.ErrInvalid},
		"the round before": {func(c *Certificate) { c.Value = first.Value }, wire.ErrInvalid},
		"far views":        {func(c *Certificate) { c.View = wire.MaxView + 1 }, wire.ErrInvalid},
	} {
		bad := good()
		bad.Value.Points, bad.Value.Voters = slices.Clone(bad.Value.Points), slices.Clone(bad.Value.Voters)
		c.change(&bad)
		if err := bad.Verify(testRun, &first); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	c := good()
	if err := c.Verify(wire.RunID{1}, &first); !errors.Is(err, wire.ErrSignature) {
		t.Errorf("in another run: %v", err)
	}
	if err := c.Verify(testRun, nil); err == nil {
		t.Error("it is no first one")
	}
	if err := first.Verify(testRun, &c); err == nil {
		t.Error("the first one follows none")
	}
}

// The largest certificate fits the limit, and travels unchanged.
func TestLargestCertificate(t *testing.T) {
	c := Certificate{Height: 1 << 31, View: wire.MaxView, Value: Value{Round: 1 << 31}}
	for i := range wire.MaxFragments {
		c.Value.Points = append(c.Value.Points, Point{Round: 1 << 31, Chain: wire.Sum([]byte{byte(i)})})
	}
	for i := range MaxVoters {
		c.Value.Voters = append(c.Value.Voters, wire.PeerID(wire.Sum([]byte{byte(i)})))
		c.Seals = append(c.Seals, Seal{Voter: uint16(i)})
	}
	slices.SortFunc(c.Value.Voters, wire.PeerID.Compare)
	b := c.Encode()
	if len(b) > MaxSize {
		t.Errorf("%d bytes, the limit is %d", len(b), MaxSize)
	}
	if again := must[Certificate](t)(Parse(b)); !bytes.Equal(again.Encode(), b) {
		t.Error("came out as another")
	}
	if _, err := Parse(make([]byte, MaxSize+1)); !errors.Is(err, wire.ErrSize) {
		t.Errorf("over the limit: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	all := keys(4)
	chain := &ledger{closed: 2 * every, voters: idsOf(all)}
	f.Add(sealedBy(all, 1, chain.value(2*every), 0, 1, 2).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse(b)
		if err != nil {
			return
		}
		if !bytes.Equal(c.Encode(), b) {
			t.Errorf("%x came out as %x", b, c.Encode())
		}
		if c.Height > 0 && c.Verify(testRun, nil) == nil {
			t.Error("it follows none and verifies")
		}
	})
}

func FuzzState(f *testing.F) {
	all := keys(1)
	v := (&ledger{closed: every, voters: idsOf(all)}).value(every)
	f.Add(State{Height: 3, View: 2, Lock: Lock{At: 1, Round: v.Round, Value: v.Digest(testRun)}, Proof: []wire.SignedVote{
		signed(all[0], wire.Prevote, 3, 1, v, 0),
	}}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseState(b)
		if err == nil && !bytes.Equal(s.Encode(), b) {
			t.Errorf("%x came out as %x", b, s.Encode())
		}
	})
}

// Two groups of more than two thirds share more than a third; groups that do not are too small.
func TestThirds(t *testing.T) {
	for n := 1; n <= MaxVoters; n++ {
		table := Table{make([]wire.PeerID, n)}
		for k := range n + 1 {
			if table.Enough(k) && !table.SomeHonest(2*k-n) {
				t.Errorf("%d of %d are enough, and two such groups share %d", k, n, 2*k-n)
			}
			if table.Enough(k) != (n-k < (n+2)/3) {
				t.Errorf("%d of %d: %v", k, n, table.Enough(k))
			}
		}
	}
}

// Who contributed most is elected, in whatever order the candidates come. Of one invite no more are than its
// owner allowed.
func TestElect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uses := []uint32{0, 1, 3}
		n := rapid.IntRange(1, 2*MaxVoters).Draw(t, "candidates")
		list := make([]Candidate, n)
		for i := range list {
			invite := rapid.IntRange(0, 2).Draw(t, "invite")
			list[i] = Candidate{
				Author: wire.PeerID(wire.Sum([]byte{byte(i), byte(i >> 8)})), Deltas: rapid.IntRange(1, 9).Draw(t, "deltas"),
				Invite: wire.PeerID{byte(invite)}, Uses: uses[invite],
			}
		}
		voters := Elect(list)
		if _, err := NewTable(voters); err != nil {
			t.Fatal(err)
		}
		shuffled := rapid.Permutation(list).Draw(t, "order")
		if !slices.Equal(Elect(shuffled), voters) {
			t.Fatal("the order of candidates matters")
		}
		of := map[wire.PeerID]uint32{}
		least := 10
		for _, c := range list {
			if slices.Contains(voters, c.Author) {
				of[c.Invite]++
				least = min(least, c.Deltas)
			}
		}
		for _, c := range list {
			if c.Uses > 0 && of[c.Invite] > c.Uses {
				t.Fatalf("%d of an invite for %d", of[c.Invite], c.Uses)
			}
			if c.Uses == 0 && c.Deltas > least && !slices.Contains(voters, c.Author) {
				t.Fatalf("one with %d deltas is left out, one with %d is in", c.Deltas, least)
			}
		}
	})
}

// Everybody's turn to propose comes, and nobody's often: the draw is by a hash, so the share of each is near its part.
func TestProposersRotate(t *testing.T) {
	table := must[Table](t)(NewTable(idsOf(keys(5))))
	turns := map[wire.PeerID]int{}
	const views = 1000
	for view := range uint32(views) {
		turns[table.Proposer(testRun, 7, view)]++
	}
	for _, id := range table.IDs() {
		if turns[id] < views/5/2 || turns[id] > views/5*2 {
			t.Errorf("%v proposes %d times of %d", id, turns[id], views)
		}
	}
}
