package data

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/inspect/ledgertest"
	"atoll/optimizer/trainer/corpus/shards"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newCorpus is what a node has that comes to a run on forty shards and two that are held out, whose user has all of them.
func newCorpus(t *testing.T) *Corpus {
	t.Helper()
	dir, user := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, Folder), 0o755))
	must(t, os.Mkdir(filepath.Dir(shards.ShardFile(user, shards.Digest{})), 0o755))
	m := &shards.Manifest{Format: shards.Format, Name: "many", Tokenizer: shards.ByteTokenizer(), Width: 2}
	for i := range 42 {
		ids := make([]int32, 400)
		for j := range ids {
			ids[j] = int32((i*j + j/7) % 256)
		}
		b := shards.AppendTokens(nil, 2, ids)
		s := shards.Shard{Digest: shards.Sum(b), Tokens: int64(len(ids)), Bytes: int64(len(ids))}
		must(t, os.WriteFile(shards.ShardFile(user, s.Digest), b, 0o600))
		if i < 2 {
			m.HeldOut = append(m.HeldOut, s)
		} else {
			m.Shards = append(m.Shards, s)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, Folder, shards.ManifestFile), m.Encode(), 0o600))
	g, digest := ledgertest.Genesis(1<<40), m.Digest()
	g.Outer.OwnText = false
	g.Corpus = &genesis.Corpus{Manifest: hex.EncodeToString(digest[:]), Tokenizer: m.Tokenizer.Digest.String()}
	c, err := Open(Config{Genesis: g, Dir: dir, User: user, Window: shards.Window{Shards: 4, Steps: 8},
		Lost: func(wire.Digest, error) {}, Found: func(gossip.Blob) {}, Report: func(_ string, err error) { must(t, err) }})
	must(t, err)
	must(t, c.Keep(0, func(string) error { return nil }))
	return c
}

// What is needed follows the steps. A disk that was full is spared the window ahead until there is room for it.
func TestNeeds(t *testing.T) {
	c := newCorpus(t)
	if !c.Next(0) {
		t.Error("nothing is planned, and nothing is needed")
	}
	c.Plan()
	all, missing := c.Needed()
	if blobs, dropped, err := c.MakeRoom(); err != nil || len(blobs) != all || len(dropped) > 0 || missing != int64(all)*800 || c.Next(0) {
		t.Errorf("of %d needed %d are missing, %d bytes; %d deleted, %v", all, len(blobs), missing, len(dropped), err)
	}
	c.Tighten()
	if few, _ := c.Needed(); few >= all || few < 3 || !c.Tight() {
		t.Errorf("on a full disk %d are needed, otherwise %d", few, all)
	}
	c.Loosen(1 << 30)
	if c.Plan(); c.Tight() {
		t.Error("the disk has room, and is taken for full")
	}
	if again, _ := c.Needed(); again != all {
		t.Errorf("%d are needed once the disk has room, were %d", again, all)
	}
	if c.Next(1 << 20); !c.Next(1 << 20) {
		t.Error("another window needs nothing else")
	}
}

// A step waits for its shards, and says what it reads.
func TestStepsWaitForShards(t *testing.T) {
	c := newCorpus(t)
	c.cfg.User = ""
	if _, err := c.Starts(0, 4); !errors.Is(err, shards.ErrMissing) || c.HeldOutHere() {
		t.Errorf("without shards: %v", err)
	}
	c = newCorpus(t)
	if linked, err := c.Link(); err != nil || linked != 42 || !c.HeldOutHere() {
		t.Fatalf("%d shards of the user, %v", linked, err)
	}
	if starts, err := c.Starts(0, 4); err != nil || len(starts) != 4 {
		t.Errorf("starts %v, %v", starts, err)
	}
	if starts, bytes, err := c.HeldOutStarts(200); err != nil || len(starts) == 0 || bytes == 0 {
		t.Errorf("held out: %v, %d bytes, %v", starts, bytes, err)
	}
	if b, err := os.ReadFile(filepath.Join(c.cfg.Dir, ReadsFile)); err != nil || len(b) == 0 {
		t.Errorf("nothing is recorded: %v", err)
	}
}
