package rounds

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"pgregory.net/rapid"
)

// pair is a round machine and the learner that it speaks for, as a node joins
// them: what the machine wants of the learner waits for a step boundary.
type pair struct {
	*rig
	rt       *rapid.T
	l        *outer.Learner
	local    []float32
	payload  map[uint64][]byte
	commands []Effect
	closed   []uint32
	made     uint64
	peers    uint32 // counts their deltas
}

func newPair(t *rapid.T) *pair {
	p := roundsParams(2)
	p.Codec = codec.Int4
	p.WindowAccept, p.WindowUnion = 2, rapid.Uint32Range(3, 9).Draw(t, "union")
	p.Budget = rapid.SampledFrom([]uint64{1 << 40, 200_000}).Draw(t, "budget")
	c := &pair{rt: t, local: make([]float32, 353), payload: map[uint64][]byte{}, closed: make([]uint32, 2)}
	c.rig = fullRig(t, p, rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "deltas of a round"))
	c.live(1)
	tips := []*outer.Tip{c.m.Fragment(0).Tip(), c.m.Fragment(1).Tip()}
	c.l = outer.NewLearner(p, c.plan, c.local, tips, c.read)
	c.learner = func(e Effect) {
		switch e.(type) {
		case WantDraft, Adopt:
			c.commands = append(c.commands, e)
		}
	}
	return c
}

func (c *pair) read(seq uint64) ([]byte, error) {
	if b, ok := c.payload[seq]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("own delta %d is not on disk", seq)
}

// boundary does what waits for the learner.
func (c *pair) boundary(*rapid.T) {
	for len(c.commands) > 0 {
		e := c.commands[0]
		c.commands = c.commands[1:]
		switch e := e.(type) {
		case WantDraft:
			c.draft(e.Fragment)
		case Adopt:
			c.adopt(e.Adopt)
		}
	}
}

func (c *pair) draft(fragment int) {
	d, err := c.l.Draft(fragment)
	if err != nil {
		c.rt.Fatal(err)
	}
	round, _ := c.m.RoundOfDraft(fragment)
	h := c.delta(self, fragment, round)
	h.Base, h.Steps, h.Tokens, h.Size = min(d.Base, h.Round-1), d.Steps, d.Tokens, len(d.Payload)
	if err := c.p.Check(h); err != nil {
		c.rt.Fatal(err)
	}
	c.payloads[h.ID], c.payload[d.Seq] = d.Payload, d.Payload
	c.m.SettleDraft(c.now, h.Fragment, OwnDelta{Seq: d.Seq, Delta: h}, nil)
	c.drain()
}

func (c *pair) adopt(a outer.Adopt) {
	loss, err := c.l.Follow(a)
	if err != nil {
		c.rt.Fatal(err)
	}
	if a.LosesUnpublished() || !loss.None() {
		c.m.Repaired(c.now, a.Fragment, loss)
		c.drain()
	}
	c.closed[a.Fragment] = a.Tip.Round
}

// train takes some steps, with a boundary before each.
func (c *pair) train(t *rapid.T) {
	for range rapid.IntRange(1, 12).Draw(t, "steps") {
		c.boundary(t)
		for i, x := range vector(c.made, len(c.local)) {
			c.local[i] += x / 100
		}
		c.l.Stepped(512, c.closed)
		c.made += 512
		c.step(1)
	}
}

// peer brings a delta of another learner, at times late or ahead.
func (c *pair) peer(t *rapid.T) {
	p := rapid.IntRange(0, 1).Draw(t, "fragment")
	round := int64(c.m.Fragment(p).Closed()) + rapid.Int64Range(-4, 2).Draw(t, "round")
	if round < 1 {
		return
	}
	c.peers++
	d := c.delta(outer.Author{1, byte(c.peers), byte(c.peers >> 8)}, p, uint32(round))
	if c.offer(d) == nil {
		c.held(d)
	}
}

// takeTips installs tips that another node might have, of a kept base and with
// nothing after it.
func (c *pair) takeTips(t *rapid.T) {
	tips, history := c.serveOlder(rapid.IntRange(0, 3).Draw(t, "base"))
	for p, tip := range tips {
		c.bases[p] = map[uint32]*outer.Tip{tip.Round: tip}
	}
	c.wanted = nil
	if err := c.m.Install(c.now, tips, history, nil); err != nil {
		t.Fatal(err)
	}
	c.drain()
}

func (c *pair) serveOlder(i int) (tips []*outer.Tip, history [][]outer.Link) {
	for p := range c.plan {
		bases := c.m.Fragment(p).Bases()
		base := bases[min(i, len(bases)-1)]
		tips = append(tips, c.bases[p][base])
		history = append(history, c.m.Fragment(p).Links(base))
		if history[p] == nil {
			history[p] = []outer.Link{{Round: tips[p].Round, Chain: tips[p].Chain, State: tips[p].State, Tokens: tips[p].Tokens, EndRound: tips[p].EndRound}}
		}
	}
	return tips, history
}

// lose has the disk lose an own delta. The learner finds out when it needs it.
func (c *pair) lose(t *rapid.T) {
	seqs := slices.Sorted(maps.Keys(c.payload))
	if len(seqs) > 0 {
		delete(c.payload, rapid.SampledFrom(seqs).Draw(t, "own delta"))
	}
}

// check: machine and learner agree at a boundary, and every token is somewhere.
func (c *pair) check(t *rapid.T) {
	c.boundary(t)
	for p := range c.plan {
		v := c.m.Fragment(p)
		a := v.Account()
		if total := a.Total(); total.Tokens != c.made || total.Steps != c.made/512 {
			t.Fatalf("fragment %d: %d tokens made, the account has %+v", p, c.made, a)
		}
		if steps, tokens := c.l.Pending(p); a.Pending != (outer.Work{Steps: uint64(steps), Tokens: tokens}) {
			t.Fatalf("fragment %d: %d steps and %d tokens are pending, the account has %+v", p, steps, tokens, a)
		}
		if local, own := c.l.InFlight(p), v.InFlight(); !slices.Equal(local, own) {
			t.Fatalf("fragment %d: own deltas %d are in flight, the learner has %d", p, own, local)
		}
	}
}

// Whatever happens to rounds, the account adds up to the token, and the learner has
// what the machine says.
func TestAccountOfRoundsAndLearner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newPair(t)
		t.Repeat(map[string]func(*rapid.T){
			"train":    c.train,
			"peer":     c.peer,
			"boundary": c.boundary,
			"time":     func(t *rapid.T) { c.after(rapid.Int64Range(1, 1500).Draw(t, "ms")) },
			"flush": func(t *rapid.T) {
				c.m.SetStopped(c.now, rapid.Bool().Draw(t, "stopped"), rapid.Bool().Draw(t, "flush"))
				c.drain()
			},
			"exclude": func(t *rapid.T) {
				c.m.Exclude(c.now, 0, c.m.Fragment(0).Closed(), outer.Author{1, byte(c.peers)})
				c.drain()
			},
			"tips": c.takeTips,
			"lose": c.lose,
			"":     c.check,
		})
	})
}
