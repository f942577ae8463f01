// Package data is what a node has of a corpus in shards: which shards the next steps need, which are here, the batches that are cut
// from them, and what of the held-out part is measured. It asks no peer and no mirror: what is missing and what was found is told,
// and what came is put into it.
package data

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/content"
	"atoll/node/genesis"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/token"
)

// Folder is where a node's folder keeps what it has of the run's corpus. It is laid out as
// `atoll data build` does.
const Folder = "corpus"

// Config says which corpus a node has, and where.
type Config struct {
	Genesis genesis.Genesis
	Author  wire.PeerID
	Observe bool          // no step reads it
	Dir     string        // the node's folder; what is in Folder of it has the run's manifest and tokenizer
	User    string        // folder of the user that may have shards, and which a run on own text trains on; "" if there is none
	Window  shards.Window // zero = the run's

	Lost   func(d wire.Digest, err error) // a file was not what it says; called from anywhere
	Found  func(b gossip.Blob)            // a file is here now that peers did not give; called from anywhere
	Report func(what string, err error)   // takes an error that stops nothing; called from anywhere
}

// Corpus is the corpus of a run that names one.
type Corpus struct {
	cfg       Config
	dir       *shards.Dir // in the node's folder; it may lack shards
	trains    *shards.Dir // what is trained on: dir, or a corpus of the user's own, which nobody is given
	content   *content.Content
	source    *shards.Source
	tokenizer token.Tokenizer
	needs     needs
	reads     reads
	gave      given // shards that the learner reads itself: verified, and in the folder
	sample    sample
}

// Open opens the corpus in a folder that has the run's manifest and tokenizer. Keep opens the place of its shards.
func Open(cfg Config) (*Corpus, error) {
	dir, err := shards.OpenDir(filepath.Join(cfg.Dir, Folder))
	if err != nil {
		return nil, err
	}
	g := cfg.Genesis
	if digest := dir.Manifest.Tokenizer.Digest.String(); digest != g.Corpus.Tokenizer {
		return nil, fmt.Errorf("the run names the tokenizer %.16s, the manifest of its corpus %.16s: whoever made the run has to make it anew", g.Corpus.Tokenizer, digest)
	}
	c := &Corpus{cfg: cfg, dir: dir, trains: dir, reads: reads{path: filepath.Join(cfg.Dir, ReadsFile)}}
	if c.tokenizer, err = dir.Tokenizer(); err != nil {
		return nil, err
	}
	if size := c.tokenizer.Size(); g.BuiltIn() && size > g.Model.Vocab {
		return nil, fmt.Errorf("the corpus has %d ids, the model of the run %d: whoever made the run has to make it anew", size, g.Model.Vocab)
	}
	fetch := c.fetch
	if g.Outer.OwnText && !cfg.Observe {
		if c.trains, err = openOwn(g, dir.Manifest, cfg.User); err != nil {
			return nil, err
		}
		fetch = c.trains.Fetch
	}
	if c.source, err = shards.NewSource(c.trains.Manifest, cmp.Or(cfg.Window, g.Window(c.trains.Manifest)), fetch); err != nil {
		return nil, err
	}
	return c, c.source.Fits(g.Model.Context)
}

// openOwn opens the corpus of a user whose run trains on own text.
func openOwn(g genesis.Genesis, common *shards.Manifest, path string) (*shards.Dir, error) {
	if path == "" || !shards.IsDir(path) {
		return nil, fmt.Errorf("each learner of this run trains on text of its own: pass --data DIR with a corpus of yours, built with the run's tokenizer (`atoll data build --tokenizer`)")
	}
	own, err := shards.OpenDir(path)
	if err != nil {
		return nil, err
	}
	if digest := own.Manifest.Tokenizer.Digest.String(); digest != g.Corpus.Tokenizer {
		return nil, fmt.Errorf("%s was built with the tokenizer %.16s, the run has %.16s: build it anew with the run's (`atoll data build --tokenizer`)", path, digest, g.Corpus.Tokenizer)
	}
	for _, s := range common.HeldOut {
		if slices.ContainsFunc(own.Manifest.Shards, func(o shards.Shard) bool { return o.Digest == s.Digest }) {
			return nil, fmt.Errorf("%s would train on shard %v, which the run holds out: build it anew without that text", path, s.Digest)
		}
	}
	return own, nil
}

// Manifest lists the shards of the run.
func (c *Corpus) Manifest() *shards.Manifest { return c.dir.Manifest }

// Folders are what a learner in another process reads: the corpus to train on, and the one whose held-out part is measured.
func (c *Corpus) Folders() (train, held string) { return c.trains.Path, c.dir.Path }

// WindowShards is how many shards a step may read.
func (c *Corpus) WindowShards() int { return c.source.WindowShards() }

// LeastDisk is the room that a node needs for the shards which it must have at one time.
func (c *Corpus) LeastDisk(evaluates bool) (least int64) {
	m := c.dir.Manifest
	if evaluates || !c.cfg.Observe {
		for _, s := range m.HeldOut {
			least += m.Size(s)
		}
	}
	if c.cfg.Observe || c.trains != c.dir {
		return least
	}
	return least + c.source.Room(2)
}

// Keep opens the place of the shards. They take so many bytes at most, 0 for any; before is asked before something is written.
func (c *Corpus) Keep(most int64, before func(path string) error) (err error) {
	c.content, err = content.Open(filepath.Dir(shards.ShardFile(c.dir.Path, shards.Digest{})), most, before)
	return err
}

// Link links what the folder of the user has.
func (c *Corpus) Link() (linked int, err error) {
	m := c.dir.Manifest
	all := m.HeldOut
	if !c.cfg.Genesis.Outer.OwnText {
		all = slices.Concat(m.HeldOut, m.Shards)
	}
	return linkShards(c.content, all, m, c.cfg.User)
}

// linkShards links the shards of a folder, whatever their files are called. It goes by name
// where the folder is one of a corpus, and otherwise reads each file that is as long as a shard.
func linkShards(s *content.Content, all []shards.Shard, m *shards.Manifest, path string) (linked int, err error) {
	if path == "" {
		return 0, nil
	}
	missing, sizes := map[wire.Digest]bool{}, map[int64]bool{}
	for _, shard := range all {
		file := shards.ShardFile(path, shard.Digest)
		if info, err := os.Stat(file); err == nil && info.Size() == m.Size(shard) {
			s.Link(wire.Digest(shard.Digest), file, m.Size(shard))
			linked++
			continue
		}
		missing[wire.Digest(shard.Digest)], sizes[m.Size(shard)] = true, true
	}
	if len(missing) == 0 {
		return linked, nil
	}
	err = filepath.WalkDir(path, func(file string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil || !sizes[info.Size()] {
			return err
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if d := wire.Sum(b); missing[d] {
			delete(missing, d)
			s.Link(d, file, info.Size())
			linked++
		}
		return nil
	})
	return linked, err
}

// lookAgain looks whether a shard is in the folder of the user by now.
func (c *Corpus) lookAgain(s shards.Shard) bool {
	file := shards.ShardFile(c.cfg.User, s.Digest)
	info, err := os.Stat(file)
	if c.cfg.User == "" || err != nil || info.Size() != c.dir.Manifest.Size(s) {
		return false
	}
	c.content.Link(wire.Digest(s.Digest), file, info.Size())
	c.cfg.Found(c.blob(s))
	return true
}

// fetch is what the source of batches reads shards with. It never waits: the step is tried again.
func (c *Corpus) fetch(ctx context.Context, s shards.Shard) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := c.content.Read(wire.Digest(s.Digest))
	if errors.Is(err, content.ErrMissing) && c.lookAgain(s) {
		b, err = c.content.Read(wire.Digest(s.Digest))
	}
	switch {
	case errors.Is(err, content.ErrDamaged):
		c.cfg.Lost(wire.Digest(s.Digest), err)
		err = shards.ErrMissing
	case errors.Is(err, content.ErrMissing):
		err = shards.ErrMissing
	}
	if err != nil {
		return nil, fmt.Errorf("shard %v: %w", s.Digest, err)
	}
	return b, nil
}

// DigestOf is a digest that the genesis has in hex, which Validate has read.
func DigestOf(text string) wire.Digest {
	b, _ := hex.DecodeString(text)
	return wire.Digest(b)
}

// blob is a shard as peers give it.
func (c *Corpus) blob(s shards.Shard) gossip.Blob {
	return gossip.Blob{Digest: wire.Digest(s.Digest), Size: c.dir.Manifest.Size(s)}
}
