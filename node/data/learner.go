package data

import (
	"context"
	"slices"
	"sync"

	"atoll/gossip/wire"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/optimizer/trainer/external"
	"atoll/tensor/token"
)

// A learner in another process reads shards itself, in the corpus folder of the node. Places of
// its rows count the tokens of all shards one after the other, as external/PROTOCOL.md says.

// Starts are the places of a step's rows. All shards that they are in are in the folder, and
// verified. Otherwise it is an error, and the step is tried again.
func (c *Corpus) Starts(step int64, rows int) ([]uint64, error) {
	g := c.cfg.Genesis
	list := c.trains.Manifest.Shards
	begins := beginsOf(list)
	starts, read := make([]uint64, rows), []shards.Shard(nil)
	for r, p := range c.source.Places(g.Seed, c.cfg.Author, step, rows, g.Model.Context) {
		if err := c.giveToTrain(list[p.Shard]); err != nil {
			return nil, err
		}
		if !slices.Contains(read, list[p.Shard]) {
			read = append(read, list[p.Shard])
		}
		starts[r] = begins[p.Shard] + uint64(p.Start)
	}
	c.forget(step)
	c.recordReads(g.Seed, c.cfg.Author, step, rows, g.Model.Context, read)
	return starts, nil
}

// beginsOf is where each of some shards begins among the tokens of all.
func beginsOf(list []shards.Shard) []uint64 {
	begins, at := make([]uint64, len(list)), uint64(0)
	for i, s := range list {
		begins[i] = at
		at += uint64(s.Tokens)
	}
	return begins
}

// giveToTrain makes sure that a shard to train on is where the learner reads it.
func (c *Corpus) giveToTrain(s shards.Shard) error {
	d := wire.Digest(s.Digest)
	if c.trains == c.dir || c.gave.has(d) {
		return c.give(s)
	}
	if _, err := c.trains.Read(context.Background(), s); err != nil {
		return err
	}
	c.gave.add(d)
	return nil
}

// give makes sure that a shard is in the folder and is what its digest says.
func (c *Corpus) give(s shards.Shard) error {
	d := wire.Digest(s.Digest)
	if c.gave.has(d) {
		return nil
	}
	b, err := c.fetch(context.Background(), s)
	if err != nil {
		return err
	}
	if err := c.dir.Manifest.Check(s, b); err != nil {
		return err
	}
	if err := c.content.Own(d); err != nil {
		return err
	}
	c.gave.add(d)
	return nil
}

// given is a set of shards that goroutines share: an evaluation looks for its shards beside the steps.
type given struct {
	mu     sync.Mutex
	shards map[wire.Digest]bool
}

func (g *given) has(d wire.Digest) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shards[d]
}

func (g *given) add(d wire.Digest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shards == nil {
		g.shards = map[wire.Digest]bool{}
	}
	g.shards[d] = true
}

// keep leaves only some shards in a set that has more than limit.
func (g *given) keep(limit int, some func() []shards.Shard) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.shards) <= limit {
		return
	}
	clear(g.shards)
	for _, s := range some() {
		g.shards[wire.Digest(s.Digest)] = true
	}
}

// forget has shards verified again that come back when the window has left them.
func (c *Corpus) forget(step int64) {
	c.gave.keep(2*c.source.WindowShards()+len(c.dir.Manifest.HeldOut), func() []shards.Shard {
		return c.source.Window(c.cfg.Genesis.Seed, c.cfg.Author, step, c.cfg.Genesis.Model.Context)
	})
}

// HeldOutStarts are places of rows that are spread evenly over the held-out shards and stand for
// about so many bytes of text, and how many bytes they do stand for.
func (c *Corpus) HeldOutStarts(text int) (starts []uint64, bytes int, err error) {
	length := c.cfg.Genesis.Model.Context
	m := c.dir.Manifest
	var all []shards.Place
	for i, s := range m.HeldOut {
		for at := int64(0); at+int64(length) < s.Tokens; at += int64(length) {
			all = append(all, shards.Place{Shard: i, Start: at})
		}
	}
	tokens, of := shards.Tokens(m.HeldOut)
	rows := min(max(1, int(float64(text)*float64(tokens)/float64(max(of, 1)))/length), external.MostRows, len(all))
	begins := beginsOf(m.HeldOut)
	read, ids := -1, []int32(nil)
	for r := range rows {
		p := all[(2*r+1)*len(all)/(2*rows)]
		if p.Shard != read {
			if err := c.give(m.HeldOut[p.Shard]); err != nil {
				return nil, 0, err
			}
			b, err := c.fetch(context.Background(), m.HeldOut[p.Shard])
			if err != nil {
				return nil, 0, err
			}
			if ids, err = m.Decode(m.HeldOut[p.Shard], b); err != nil {
				return nil, 0, err
			}
			read = p.Shard
		}
		starts = append(starts, begins[p.Shard]+uint64(p.Start))
		bytes += int(token.TextSize(c.tokenizer, m.Tokenizer.End, ids[p.Start], ids[p.Start+1:][:length]))
	}
	return starts, bytes, nil
}
