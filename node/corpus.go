package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"atoll/gossip/wire"
	"atoll/node/data"
	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/token"
)

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
	if err := n.loadCorpus(ctx, path); err != nil {
		return err
	}
	n.corpus, err = data.Open(data.Config{
		Genesis: n.genesis, Author: n.self, Observe: n.cfg.Observe, Dir: n.cfg.Dir, User: path, Window: n.cfg.window,
		Lost: n.shardLost, Found: n.shardFound, Report: n.check,
	})
	if err != nil {
		return err
	}
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
func (n *node) loadCorpus(ctx context.Context, path string) error {
	if err := n.checkFolder(path); err != nil {
		return err
	}
	const remedy = "pass --data DIR with the folder that `atoll data build` made, as to the first node of a run"
	for _, f := range []wanted{
		{shards.ManifestFile, "manifest of the run's corpus", data.DigestOf(n.genesis.Corpus.Manifest), shards.MaxManifest, remedy},
		{shards.TokenizerFile, "tokenizer of the run", data.DigestOf(n.genesis.Corpus.Tokenizer), token.MaxFile, remedy},
	} {
		if f.digest.IsZero() { // bytes, which have no file
			continue
		}
		if err := n.obtain(ctx, data.Folder, path, f); err != nil {
			return err
		}
	}
	return nil
}

// wanted is a file that the node's folder has to have.
type wanted struct {
	name, what string
	digest     wire.Digest
	most       int64  // bytes
	remedy     string // where nobody can be asked for it
}

// obtain makes sure that a folder in that of the node has a file: from another folder, or from the peers of the link.
func (n *node) obtain(ctx context.Context, to, from string, f wanted) (err error) {
	name := filepath.FromSlash(f.name)
	if fileHas(filepath.Join(n.cfg.Dir, to, name), f.digest, f.most) != nil {
		return nil
	}
	b := fileHas(filepath.Join(from, name), f.digest, f.most)
	if b == nil {
		if b, err = n.fetchBlob(ctx, f); err != nil {
			return err
		}
	}
	to = filepath.Join(n.cfg.Dir, to) // may be on another disk
	if err = errors.Join(store.Begin(to), os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755)); err == nil {
		err = n.cfg.disk.WriteFile(to, name, b)
	}
	return store.Explain(err, n.cfg.Dir)
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

// openContent opens the place of the shards, and links what a folder of the user has.
func (n *node) openContent(path string) error {
	c := n.corpus
	least := c.LeastDisk(n.cfg.EvalBytes > 0)
	if n.cfg.DataDisk > 0 && n.cfg.DataDisk < least {
		return fmt.Errorf("--data-disk %s: the held-out shards of %s and two windows of %d shards need %s: pass at least that",
			status.Bytes(float64(n.cfg.DataDisk)), corpusLabel(n.genesis), c.WindowShards(), status.Bytes(float64(least)))
	}
	before := func(path string) error { return n.cfg.disk.Ask(store.Op{Kind: store.OpWrite, Path: path}) }
	if err := c.Keep(n.cfg.DataDisk, before); err != nil {
		return store.Explain(err, n.cfg.Dir)
	}
	linked, err := c.Link()
	if path == "" || n.genesis.Outer.OwnText {
		return err
	}
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	switch m := c.Manifest(); {
	case linked == 0 && len(n.dials) == 0 && !m.HasMirrors():
		return fmt.Errorf("the run trains on %s, and %s has none of its shards: pass --data DIR with the folder that `atoll data build` made", corpusLabel(n.genesis), path)
	case linked < len(m.HeldOut)+len(m.Shards):
		n.screen.Event("text", "", fmt.Sprintf("%s has %d of the %d shards of %s; peers give the others", path, linked, len(m.HeldOut)+len(m.Shards), corpusLabel(n.genesis)))
	}
	return nil
}

// keepTokenizer copies tokenizer.json to the node's folder: it belongs to the model.
func (n *node) keepTokenizer() error {
	digest := n.corpus.Manifest().Tokenizer.Digest
	if digest == (shards.Digest{}) { // bytes, which have no file
		return nil
	}
	if _, err := shards.ReadTokenizerFile(n.cfg.Dir, digest); err == nil {
		return nil
	}
	file, err := shards.ReadTokenizerFile(filepath.Join(n.cfg.Dir, data.Folder), digest)
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

// fetchBlob fetches a blob from the peers of the link, before there is a machine that could.
func (n *node) fetchBlob(ctx context.Context, f wanted) ([]byte, error) {
	if len(n.dials) == 0 {
		return nil, fmt.Errorf("the %s (%.8x) is not here, and there is no peer to ask: %s", f.what, f.digest[:], f.remedy)
	}
	if err := n.allowed(ctx); err != nil {
		return nil, err
	}
	peers, err := n.linkPeers()
	if err != nil {
		return nil, err
	}
	b, err := peers.Blob(ctx, f.what, f.digest, f.most)
	if err != nil {
		return nil, fmt.Errorf("fetch the %s: %w", f.what, err)
	}
	return b, nil
}
