package data

import (
	"os"
	"path/filepath"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/content"
	"atoll/optimizer/trainer/corpus/shards"
)

// needs are the shards that a node needs. They belong to the loop.
type needs struct {
	planned bool
	moves   uint64 // of the windows that were planned for last
	list    []shards.Shard
	step    int64 // that the learner takes next, as the loop knows
	tight   bool  // the disk was full: nothing is fetched before a step reads it
}

// PutPart implements replica.Blobs, as do Part and HasPart: the files that this node gives its peers, and where it keeps theirs.
// A nil Corpus has none.
func (c *Corpus) PutPart(d wire.Digest, p wire.Part) error {
	if c == nil {
		return content.ErrMissing
	}
	return c.content.PutPart(d, p)
}

func (c *Corpus) Part(d wire.Digest, index int) ([]byte, error) {
	if c == nil {
		return nil, content.ErrMissing
	}
	return c.content.Part(d, index)
}

func (c *Corpus) HasPart(d wire.Digest, index int) bool {
	return c != nil && c.content.HasPart(d, index)
}

// Put keeps a whole file.
func (c *Corpus) Put(d wire.Digest, file []byte) error { return c.content.Put(d, file) }

// Has reports whether a file is whole.
func (c *Corpus) Has(d wire.Digest) bool { return c.content.Has(d) }

// Usage is how many bytes the shards take, and at most may.
func (c *Corpus) Usage() (used, most int64) { return c.content.Usage() }

// Files is how many shards are in the folder.
func (c *Corpus) Files() int { return c.content.Files() }

// Inventory tells of each file that is whole or partly here, the manifest and the tokenizer among them.
func (c *Corpus) Inventory(whole func(gossip.Blob), partly func(wire.Digest, wire.PartSet)) {
	named := c.cfg.Genesis.Corpus
	for name, digest := range map[string]string{shards.ManifestFile: named.Manifest, shards.TokenizerFile: named.Tokenizer} {
		path := filepath.Join(c.dir.Path, name)
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			c.content.Link(DigestOf(digest), path, info.Size())
		}
	}
	c.content.Whole(func(d wire.Digest, _ string, size int64) { whole(gossip.Blob{Digest: d, Size: size}) })
	c.content.Partly(partly)
}

// Next takes the step that the learner takes next. It reports whether other shards are needed for it than were planned for.
func (c *Corpus) Next(step int64) bool {
	c.needs.step = step
	return !c.needs.planned || c.source.Moves(step) != c.needs.moves
}

// Plan finds out which shards are needed from the next step on.
func (c *Corpus) Plan() {
	n := &c.needs
	n.planned, n.moves = true, c.source.Moves(n.step)
	n.list = c.neededFrom(n.step)
}

// Tighten takes it that the disk is full: shards that no step reads yet, or any more, are not needed.
func (c *Corpus) Tighten() {
	c.needs.tight = true
	c.needs.list = c.neededFrom(c.needs.step)
}

// Tight reports whether the disk was full.
func (c *Corpus) Tight() bool { return c.needs.tight }

// Loosen lets shards be fetched ahead again once there is room for two windows: they take one, and the
// other is for what else grows.
func (c *Corpus) Loosen(free int64) { c.needs.tight = free < 2*c.source.Room(1) }

// neededFrom are the held-out shards, which everybody has, then the window of a step, then, unless the
// disk is tight, the one that follows it.
func (c *Corpus) neededFrom(step int64) []shards.Shard {
	g := c.cfg.Genesis
	need := slices.Clone(c.dir.Manifest.HeldOut)
	if c.cfg.Observe || c.trains != c.dir {
		return need
	}
	ahead := 1
	if c.needs.tight {
		ahead = 0
	}
	for windows := range 1 + ahead {
		for _, s := range c.source.Ahead(g.Seed, c.cfg.Author, step, g.Model.Context, windows) {
			if !slices.Contains(need, s) {
				need = append(need, s)
			}
		}
	}
	return need
}

// Needed is how many shards are needed, and how many bytes those have that are not whole.
func (c *Corpus) Needed() (shards int, missing int64) {
	for _, s := range c.needs.list {
		if !c.content.Has(wire.Digest(s.Digest)) {
			missing += c.dir.Manifest.Size(s)
		}
	}
	return len(c.needs.list), missing
}

// MakeRoom makes room for the shards that are needed and not here. It returns these, and those that it deleted.
func (c *Corpus) MakeRoom() (missing []gossip.Blob, dropped []wire.Digest, err error) {
	var digests []wire.Digest
	coming := int64(0)
	for _, s := range c.needs.list {
		b := c.blob(s)
		digests = append(digests, b.Digest)
		if !c.content.Has(b.Digest) {
			missing = append(missing, b)
			coming += b.Size
		}
	}
	c.content.Need(digests)
	if c.needs.tight {
		dropped, err = c.content.Shed()
	} else {
		dropped, err = c.content.Trim(coming)
	}
	return missing, dropped, err
}
