package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/content"
	"atoll/node/core"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/trainer/corpus/shards"
)

// inventory is what a node needs of a corpus in shards. It belongs to the loop.
type inventory struct {
	lost    func(d wire.Digest, err error) // a file was not what it says; called from anywhere
	found   func(b gossip.Blob)            // a file is here now; called from anywhere
	check   func(what string, err error)   // takes an error that stops nothing; called from anywhere
	planned bool
	moves   uint64 // of the windows that were planned for last
	need    []shards.Shard
	step    int64 // that the learner takes next, as the loop knows
	tight   bool  // the disk was full: nothing is fetched before a step reads it
}

// blobs are the files that this node gives its peers, and where it keeps theirs.
type blobs struct{ n *node }

// PutPart implements replica.Blobs, as do Part and HasPart.
func (b blobs) PutPart(d wire.Digest, p wire.Part) error {
	if b.n.corpus == nil {
		return content.ErrMissing
	}
	return b.n.corpus.content.PutPart(d, p)
}

func (b blobs) Part(d wire.Digest, index int) ([]byte, error) {
	if b.n.corpus == nil {
		return nil, content.ErrMissing
	}
	return b.n.corpus.content.Part(d, index)
}

func (b blobs) HasPart(d wire.Digest, index int) bool {
	return b.n.corpus != nil && b.n.corpus.content.HasPart(d, index)
}

// inventoryUp tells the machine what this node has of the corpus, and what it needs first.
func (n *node) inventoryUp() {
	c := n.corpus
	if c == nil {
		return
	}
	for name, digest := range map[string]string{shards.ManifestFile: n.genesis.Corpus.Manifest, shards.TokenizerFile: n.genesis.Corpus.Tokenizer} {
		path := filepath.Join(c.dir.Path, name)
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			c.content.Link(digestOf(digest), path, info.Size())
		}
	}
	now := n.clock.Now()
	c.content.Whole(func(d wire.Digest, _ string, size int64) { n.machine.HoldBlob(now, gossip.Blob{Digest: d, Size: size}) })
	c.content.Partly(func(d wire.Digest, parts wire.PartSet) { n.machine.HoldParts(now, d, parts) })
	if n.built != nil { // which nobody steps yet
		c.inventory.step = n.built.Steps()
	}
	n.replanShards()
}

// replanShards is planShards from the next step on, whatever was known.
func (n *node) replanShards() {
	if c := n.corpus; c != nil {
		c.inventory.planned = false
		n.planShards(n.clock.Now(), c.inventory.step)
	}
}

// planShards says what is needed from a step on, unless that is known.
func (n *node) planShards(now core.Time, step int64) {
	c := n.corpus
	if c == nil {
		return
	}
	c.inventory.step = step
	if c.inventory.planned && c.source.Moves(step) == c.inventory.moves {
		return
	}
	n.loosen()
	c.inventory.planned, c.inventory.moves = true, c.source.Moves(step)
	c.inventory.need = n.neededFrom(step)
	n.wantShards(now)
}

// tighten makes room on a full disk: shards that no step reads yet, or any more, go. It returns how many.
func (n *node) tighten() (dropped int) {
	c := n.corpus
	c.inventory.tight = true
	c.inventory.need = n.neededFrom(c.inventory.step)
	before := c.content.Files()
	n.wantShards(n.clock.Now())
	return before - c.content.Files()
}

// loosen lets shards be fetched ahead again once there is room for two windows: they take one, and the
// other is for what else grows.
func (n *node) loosen() {
	c := n.corpus
	if !c.inventory.tight || n.disk.trouble != store.Well {
		return
	}
	free, err := n.cfg.disk.FreeBytes(n.cfg.Dir)
	n.check("look how much room there is", err)
	c.inventory.tight = err != nil || free < 2*c.source.Room(1)
}

// neededFrom are the held-out shards, which everybody has, then the window of a step, then, unless the
// disk is tight, the one that follows it.
func (n *node) neededFrom(step int64) []shards.Shard {
	m, g := n.corpus.dir.Manifest, n.genesis
	need := slices.Clone(m.HeldOut)
	if n.cfg.Observe || n.corpus.trains != n.corpus.dir {
		return need
	}
	ahead := 1
	if n.corpus.inventory.tight {
		ahead = 0
	}
	for windows := range 1 + ahead {
		for _, s := range n.corpus.source.Ahead(g.Seed, n.self, step, g.Model.Context, windows) {
			if !slices.Contains(need, s) {
				need = append(need, s)
			}
		}
	}
	return need
}

// missing is the bytes of the shards that are needed and not whole.
func (c *sharded) missing() (bytes int64) {
	for _, s := range c.inventory.need {
		if !c.content.Has(wire.Digest(s.Digest)) {
			bytes += c.dir.Manifest.Size(s)
		}
	}
	return bytes
}

// wantShards has the shards fetched that are needed and not here, and makes room for them.
func (n *node) wantShards(now core.Time) {
	c := n.corpus
	var missing []gossip.Blob
	var digests []wire.Digest
	coming := int64(0)
	for _, s := range c.inventory.need {
		b := c.blob(s)
		digests = append(digests, b.Digest)
		if !c.content.Has(b.Digest) {
			missing = append(missing, b)
			coming += b.Size
		}
	}
	c.content.Need(digests)
	makeRoom := func() ([]wire.Digest, error) { return c.content.Trim(coming) }
	if c.inventory.tight {
		makeRoom = c.content.Shed
	}
	dropped, err := makeRoom()
	n.check("delete shards that are not needed", err)
	for _, d := range dropped {
		n.machine.DropBlob(now, d)
	}
	n.machine.WantBlobs(now, missing)
}

// shardLost says that a file was not what it says, and has it fetched again.
func (n *node) shardLost(d wire.Digest, err error) {
	n.post(func(now core.Time) {
		n.screen.Alarm("damaged", "", fmt.Sprintf("shard %v: %v: fetches it again", d, err), "check that disk")
		n.machine.DropBlob(now, d)
		n.wantShards(now)
	})
}

// shardFound says that a file is here that peers did not give.
func (n *node) shardFound(b gossip.Blob) {
	n.post(func(now core.Time) {
		n.machine.HoldBlob(now, b)
		n.wantShards(now)
	})
}

// dataStatus says what this node has of the shards that it needs; nil where there are none.
func (n *node) dataStatus() *status.Data {
	c := n.corpus
	if c == nil {
		return nil
	}
	s := &status.Data{Corpus: c.dir.Manifest.Name, Needed: len(c.inventory.need), Waiting: n.train != nil && n.train.LacksData()}
	s.UsedBytes, s.LimitBytes = c.content.Usage()
	for _, v := range n.machine.Gossip().Wanted() {
		if c.content.Has(v.Digest) {
			continue
		}
		s.Missing++
		s.MissingBytes += v.Size - v.Have
		if s.Missing == 1 {
			s.Next = fmt.Sprintf("shard %v: %.0f %% of %s, %s", v.Digest, 100*float64(v.Have)/float64(v.Size), status.Bytes(float64(v.Size)), sourcesText(v.Sources))
		}
	}
	return s
}

// sourcesText says who has what is missing.
func sourcesText(sources int) string {
	switch sources {
	case 0:
		return "no peer that is here has the rest"
	case 1:
		return "1 peer has more of it"
	}
	return fmt.Sprintf("%d peers have more of it", sources)
}
