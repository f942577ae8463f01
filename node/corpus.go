package node

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/content"
	"atoll/node/genesis"
	"atoll/node/mirror"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/optimizer/trainer/external"
	"atoll/tensor/token"
)

// CorpusFolder is where a node's folder keeps what it has of the run's corpus. It is laid out as
// `atoll data build` does.
const CorpusFolder = "corpus"

// sharded is the corpus of a run that names one.
type sharded struct {
	dir       *shards.Dir // in the node's folder; it may lack shards
	trains    *shards.Dir // what is trained on: dir, or a corpus of the user's own, which nobody is given
	content   *content.Content
	linked    string // folder of the user that may have shards, "" if there is none
	source    *shards.Source
	tokenizer token.Tokenizer
	inventory inventory
	mirrors   mirror.Mirrors
	reads     reads

	gave     given // shards that the learner reads itself: verified, and in the folder
	sampling sync.Mutex
	sample   shards.Sample // of the held-out part; empty until an evaluation has read it
}

// readCorpus opens the run's corpus. An observer whom nobody gives it evaluates nothing.
func (n *node) readCorpus(ctx context.Context) error {
	if n.cfg.Observe && n.cfg.EvalBytes == 0 && n.cfg.Data == "" {
		return nil
	}
	err := n.loadAndOpen(ctx)
	if err != nil && n.cfg.Observe && n.cfg.Data == "" && ctx.Err() == nil {
		n.corpus = nil
		n.evaluateNothing(err.Error())
		return nil
	}
	return err
}

// loadAndOpen opens what this node has of the run's corpus, and what tells the rest. Nobody trains on
// another one.
func (n *node) loadAndOpen(ctx context.Context) error {
	path, err := n.corpusPath()
	if err != nil {
		return err
	}
	dir := filepath.Join(n.cfg.Dir, CorpusFolder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return store.Explain(err, n.cfg.Dir)
	}
	if err := n.loadCorpus(ctx, dir, path); err != nil {
		return err
	}
	if n.corpus, err = openCorpus(n.genesis, dir, path, n.cfg); err != nil {
		return err
	}
	n.corpus.reads.path = filepath.Join(n.cfg.Dir, ReadsFile)
	n.corpus.inventory.lost, n.corpus.inventory.found, n.corpus.inventory.check, n.corpus.linked = n.shardLost, n.shardFound, n.check, path
	if err := n.openContent(path); err != nil {
		return err
	}
	if path != "" {
		n.check("remember the text", n.rememberText(path))
	}
	n.check("keep the tokenizer", n.keepTokenizer())
	return nil
}

// corpusPath is --data, or what an earlier start was told if that is still there.
func (n *node) corpusPath() (string, error) {
	path, err := n.dataPath()
	if err != nil || path == "" {
		return "", err
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return "", fmt.Errorf("--data %s is a file, and the run trains on %s: pass a folder that has shards of it, or leave --data out to fetch them from peers", path, corpusLabel(n.genesis))
	case err == nil:
		return path, nil
	case n.cfg.Data != "":
		return "", fmt.Errorf("--data: %w: pass a folder that has shards of the run, or leave --data out to fetch them from peers", err)
	}
	n.screen.Event("text", "", fmt.Sprintf("%v: fetches from peers what is not in the node's folder", err))
	return "", nil
}

func corpusLabel(g genesis.Genesis) string {
	return fmt.Sprintf("the corpus %q (manifest %.16s)", g.Data.Name, g.Corpus.Manifest)
}

// loadCorpus makes sure that the folder has the manifest and the tokenizer of the run: from a
// folder of the user, or from the peers of the link.
func (n *node) loadCorpus(ctx context.Context, dir, path string) error {
	if err := n.checkFolder(path); err != nil {
		return err
	}
	for _, f := range []struct {
		name, what, digest string
		most               int64
	}{
		{shards.ManifestFile, "manifest of the run's corpus", n.genesis.Corpus.Manifest, shards.MaxManifest},
		{shards.TokenizerFile, "tokenizer of the run", n.genesis.Corpus.Tokenizer, token.MaxFile},
	} {
		digest := digestOf(f.digest)
		if digest.IsZero() { // bytes, which have no file
			continue
		}
		if fileHas(filepath.Join(dir, f.name), digest, f.most) != nil {
			continue
		}
		b := fileHas(filepath.Join(path, f.name), digest, f.most)
		if b == nil {
			var err error
			if b, err = n.fetchBlob(ctx, f.what, digest, f.most); err != nil {
				return err
			}
		}
		if err := n.cfg.disk.WriteFile(dir, f.name, b); err != nil {
			return store.Explain(err, n.cfg.Dir)
		}
	}
	return nil
}

// checkFolder refuses a folder that has the manifest of another corpus.
func (n *node) checkFolder(path string) error {
	if path == "" || !shards.IsDir(path) || n.genesis.Outer.OwnText {
		return nil
	}
	d, err := shards.OpenDir(path)
	if err != nil {
		return err
	}
	if digest := d.Manifest.Digest().String(); digest != n.genesis.Corpus.Manifest {
		return fmt.Errorf("the run trains on %s, but %s has the corpus %q (manifest %.16s): pass --data DIR with the run's, or leave it out to fetch that from peers", corpusLabel(n.genesis), path, d.Manifest.Name, digest)
	}
	return nil
}

// digestOf is a digest that the genesis has in hex, which Validate has read.
func digestOf(text string) wire.Digest {
	b, _ := hex.DecodeString(text)
	return wire.Digest(b)
}

// fileHas is the content of a file if that has the digest, otherwise nil.
func fileHas(path string, digest wire.Digest, most int64) []byte {
	info, err := os.Stat(path)
	if err != nil || info.Size() > most {
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil || wire.Sum(b) != digest {
		return nil
	}
	return b
}

// openCorpus opens the corpus in a folder that has the run's manifest and tokenizer. data is the folder
// of the user, which a run on own text trains on.
func openCorpus(g genesis.Genesis, folder, data string, cfg Config) (*sharded, error) {
	dir, err := shards.OpenDir(folder)
	if err != nil {
		return nil, err
	}
	if digest := dir.Manifest.Tokenizer.Digest.String(); digest != g.Corpus.Tokenizer {
		return nil, fmt.Errorf("the run names the tokenizer %.16s, the manifest of its corpus %.16s: whoever made the run has to make it anew", g.Corpus.Tokenizer, digest)
	}
	c := &sharded{dir: dir}
	if c.tokenizer, err = dir.Tokenizer(); err != nil {
		return nil, err
	}
	if size := c.tokenizer.Size(); g.BuiltIn() && size > g.Model.Vocab {
		return nil, fmt.Errorf("the corpus has %d ids, the model of the run %d: whoever made the run has to make it anew", size, g.Model.Vocab)
	}
	fetch := c.fetch
	c.trains = dir
	if g.Outer.OwnText && !cfg.Observe {
		if c.trains, err = openOwn(g, dir.Manifest, data); err != nil {
			return nil, err
		}
		fetch = c.trains.Fetch
	}
	if c.source, err = shards.NewSource(c.trains.Manifest, cmp.Or(cfg.window, g.Window(c.trains.Manifest)), fetch); err != nil {
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

// openContent opens the place of the shards, and links what a folder of the user has.
func (n *node) openContent(path string) (err error) {
	c := n.corpus
	least := c.leastDisk(n.cfg.EvalBytes > 0, n.cfg.Observe)
	if n.cfg.DataDisk > 0 && n.cfg.DataDisk < least {
		return fmt.Errorf("--data-disk %s: the held-out shards of %s and two windows of %d shards need %s: pass at least that",
			status.Bytes(float64(n.cfg.DataDisk)), corpusLabel(n.genesis), c.source.WindowShards(), status.Bytes(float64(least)))
	}
	before := func(path string) error { return n.cfg.disk.Ask(store.Op{Kind: store.OpWrite, Path: path}) }
	if c.content, err = content.Open(filepath.Dir(shards.ShardFile(c.dir.Path, shards.Digest{})), n.cfg.DataDisk, before); err != nil {
		return store.Explain(err, n.cfg.Dir)
	}
	if path == "" || n.genesis.Outer.OwnText {
		_, err := linkShards(c.content, c.dir.Manifest.HeldOut, c.dir.Manifest, path)
		return err
	}
	linked, err := linkShards(c.content, slices.Concat(c.dir.Manifest.HeldOut, c.dir.Manifest.Shards), c.dir.Manifest, path)
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	switch all := len(c.dir.Manifest.HeldOut) + len(c.dir.Manifest.Shards); {
	case linked == 0 && len(n.cfg.addrs()) == 0 && !c.dir.Manifest.HasMirrors():
		return fmt.Errorf("the run trains on %s, and %s has none of its shards: pass --data DIR with the folder that `atoll data build` made", corpusLabel(n.genesis), path)
	case linked < all:
		n.screen.Event("text", "", fmt.Sprintf("%s has %d of the %d shards of %s; peers give the others", path, linked, all, corpusLabel(n.genesis)))
	}
	return nil
}

// leastDisk is the room that a node needs for the shards which it must have at one time.
func (c *sharded) leastDisk(evaluates, observes bool) (least int64) {
	m := c.dir.Manifest
	if evaluates || !observes {
		for _, s := range m.HeldOut {
			least += m.Size(s)
		}
	}
	if observes || c.trains != c.dir {
		return least
	}
	return least + c.source.Room(2)
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
func (c *sharded) lookAgain(s shards.Shard) bool {
	file := shards.ShardFile(c.linked, s.Digest)
	info, err := os.Stat(file)
	if c.linked == "" || err != nil || info.Size() != c.dir.Manifest.Size(s) {
		return false
	}
	c.content.Link(wire.Digest(s.Digest), file, info.Size())
	c.inventory.found(c.blob(s))
	return true
}

// fetch is what the source of batches reads shards with. It never waits: the step is tried again.
func (c *sharded) fetch(ctx context.Context, s shards.Shard) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := c.content.Read(wire.Digest(s.Digest))
	if errors.Is(err, content.ErrMissing) && c.lookAgain(s) {
		b, err = c.content.Read(wire.Digest(s.Digest))
	}
	switch {
	case errors.Is(err, content.ErrDamaged):
		c.inventory.lost(wire.Digest(s.Digest), err)
		err = shards.ErrMissing
	case errors.Is(err, content.ErrMissing):
		err = shards.ErrMissing
	}
	if err != nil {
		return nil, fmt.Errorf("shard %v: %w", s.Digest, err)
	}
	return b, nil
}

// keepTokenizer copies tokenizer.json to the node's folder: it belongs to the model.
func (n *node) keepTokenizer() error {
	digest := n.corpus.dir.Manifest.Tokenizer.Digest
	if digest == (shards.Digest{}) { // bytes, which have no file
		return nil
	}
	if _, err := shards.ReadTokenizerFile(n.cfg.Dir, digest); err == nil {
		return nil
	}
	file, err := shards.ReadTokenizerFile(n.corpus.dir.Path, digest)
	if err != nil {
		return err
	}
	return n.cfg.disk.WriteFile(n.cfg.Dir, shards.TokenizerFile, file)
}

// text is what the built-in trainer draws batches from.
func (n *node) text() trainer.Source {
	if n.corpus != nil {
		return n.corpus
	}
	return n.data
}

// heldOutHere reports whether all held-out shards are here.
func (c *sharded) heldOutHere() bool {
	return !slices.ContainsFunc(c.dir.Manifest.HeldOut, func(s shards.Shard) bool { return !c.content.Has(wire.Digest(s.Digest)) })
}

// readSample reads what evaluations measure, once. It keeps its own windows alone: the held-out part may be large.
func (c *sharded) readSample(ctx context.Context, text, length int) (shards.Sample, error) {
	c.sampling.Lock()
	defer c.sampling.Unlock()
	if len(c.sample.Windows) > 0 {
		return c.sample, nil
	}
	sample, err := c.dir.Manifest.Sample(ctx, c.fetch, c.tokenizer, int64(text), length)
	if err != nil {
		return sample, err
	}
	for i, w := range sample.Windows {
		sample.Windows[i] = slices.Clone(w)
	}
	c.sample = sample
	return sample, nil
}

// evaluate measures global parameters on a sample of so many bytes.
func (c *sharded) evaluate(ctx context.Context, g genesis.Genesis, tips []*outer.Tip, text int) (external.Evaluation, error) {
	sample, err := c.readSample(ctx, text, g.Model.Context)
	if err != nil {
		return external.Evaluation{}, err
	}
	bits, err := trainer.BitsPerByteOf(ctx, g.Model, g.Global(tips), sample.Windows, sample.Bytes)
	targets := 0
	for _, w := range sample.Windows {
		targets += len(w) - 1
	}
	return external.Evaluation{Loss: bits * math.Ln2 * float64(sample.Bytes) / float64(targets), Tokens: targets, Bytes: int(sample.Bytes)}, err
}

// blob is a shard as peers give it.
func (c *sharded) blob(s shards.Shard) gossip.Blob {
	return gossip.Blob{Digest: wire.Digest(s.Digest), Size: c.dir.Manifest.Size(s)}
}
