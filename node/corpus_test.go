package node

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/trainer/corpus/build"
	"atoll/optimizer/trainer/corpus/documents"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/token"
)

// toyCorpus builds a corpus of the toy text, of bytes.
func toyCorpus(t *testing.T, name string) *shards.Dir {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	folder := t.TempDir()
	for i := range 20 {
		text := strings.Repeat(string(rune('a'+i))+" quick brown fox jumps over the lazy dog. ", 20)
		if err := os.WriteFile(filepath.Join(folder, string(rune('a'+i))+".txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := documents.List([]string{folder})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := build.Run(t.Context(), build.Config{Out: out, Inputs: files, Tokenizer: token.Byte, Name: name, HeldOut: 0.1}); err != nil {
		t.Fatal(err)
	}
	d, err := shards.OpenDir(out)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// aboutCorpus is a run that trains on a corpus.
func aboutCorpus(budget uint64, m *shards.Manifest) genesis.Genesis {
	g := toyGenesis(budget)
	digest := m.Digest()
	g.Format, g.BeatMs, g.QuietMs = genesis.Format, 0, 0 // format 1 has no corpora
	g.Data, g.Tokenizer = genesis.Data{Name: m.Name}, genesis.CorpusTokenizer
	g.Corpus = &genesis.Corpus{Manifest: hex.EncodeToString(digest[:]), Tokenizer: m.Tokenizer.Digest.String(), Shards: 4, Steps: 100}
	return g
}

// Learners of a run on a corpus train on it, say what it is worth on its held-out shards, and
// on no other text. They need no --data after a restart.
func TestRunOnACorpus(t *testing.T) {
	t.Parallel()
	c, other, dir := toyCorpus(t, "foxes"), toyCorpus(t, "others"), t.TempDir()
	first := launch(t, Config{Genesis: aboutCorpus(1<<40, c.Manifest).Encode(), Data: c.Path, Pace: slowPace, EvalBytes: 100, EvalEvery: 1})
	link := first.link()
	for path, want := range map[string]string{
		"": "pass --data DIR", other.Path: `has the corpus "others"`, t.TempDir(): "manifest.json",
	} {
		m := launch(t, Config{Dir: dir, Link: link, Data: path})
		<-m.ended
		if m.err == nil || !strings.Contains(m.err.Error(), want) || path == other.Path && !strings.Contains(m.err.Error(), `the corpus "foxes" (manifest `) {
			t.Errorf("--data %q: %v", path, m.err)
		}
		if m.last.Step != 0 {
			t.Errorf("--data %q: %d steps", path, m.last.Step)
		}
	}
	launch(t, Config{Dir: dir, Link: link, Data: c.Path, Pace: slowPace}).joinAndLeave()
	if path, err := store.LoadText(dir); err != nil || path != c.Path {
		t.Errorf("the folder remembers %q, %v", path, err)
	}
	launch(t, Config{Dir: dir, Pace: slowPace}).joinAndLeave()
	first.until("bits per byte", func(s status.Snapshot) bool { return s.ValBPB > 0 })
	first.leave()
}

// A learner whose shard is not there waits, says so, and trains when it is.
func TestLearnerWaitsForShards(t *testing.T) {
	t.Parallel()
	c := toyCorpus(t, "foxes")
	file := shards.ShardFile(c.Path, c.Manifest.Shards[0].Digest)
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	m := launch(t, Config{Genesis: aboutCorpus(1<<40, c.Manifest).Encode(), Data: c.Path, Pace: slowPace})
	if s := m.until("it waits", hasEvent("waiting for data", "it is not there")); s.Step != 0 {
		t.Errorf("%d steps without data", s.Step)
	}
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	m.until("a step", func(s status.Snapshot) bool { return s.Step > 0 })
	m.leave()
}
