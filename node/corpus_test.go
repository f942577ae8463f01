package node

import (
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/gossip/wire"
	"atoll/node/data"
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
	files, err := documents.List([]string{folder}, documents.Tally{})
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
	g.Data = genesis.Data{Name: m.Name}
	g.Outer.OwnText = false
	g.Corpus = &genesis.Corpus{Manifest: hex.EncodeToString(digest[:]), Tokenizer: m.Tokenizer.Digest.String()}
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
		other.Path: `has the corpus "others"`, filepath.Join(dir, "nowhere"): "leave --data out to fetch them from peers",
		shards.ShardFile(c.Path, c.Manifest.Shards[0].Digest): "is a file",
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

// manyShards is a corpus of random bytes in so many shards, and two that are held out.
func manyShards(t *testing.T, n, tokens int, mirrors ...string) *shards.Dir {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Dir(shards.ShardFile(dir, shards.Digest{})), 0o755))
	m := &shards.Manifest{Format: shards.Format, Name: "many", Tokenizer: shards.ByteTokenizer(), Width: 2, Mirrors: mirrors}
	draw := rand.New(rand.NewPCG(5, uint64(n)))
	for i := range n + 2 {
		ids := make([]int32, tokens)
		for j := range ids {
			ids[j] = draw.Int32N(256)
		}
		b := shards.AppendTokens(nil, 2, ids)
		s := shards.Shard{Digest: shards.Sum(b), Tokens: int64(tokens), Bytes: int64(tokens)}
		must(t, os.WriteFile(shards.ShardFile(dir, s.Digest), b, 0o600))
		if i < 2 {
			m.HeldOut = append(m.HeldOut, s)
		} else {
			m.Shards = append(m.Shards, s)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, shards.ManifestFile), m.Encode(), 0o600))
	d, err := shards.OpenDir(dir)
	must(t, err)
	return d
}

// fetched are the shards in a node's folder.
func fetched(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, data.Folder, "shards", "*.bin"))
	must(t, err)
	return files
}

func trains(s status.Snapshot) bool { return s.Step > 0 }

// The link is enough: a joiner with an empty folder fetches manifest and shards of its peers,
// trains, and gives them to the next, whose only source it is. Both fetch what they need and not
// more, and the second start of a node fetches nothing again.
func TestTheLinkIsEnough(t *testing.T) {
	t.Parallel()
	c, dir := manyShards(t, 12, 200_000), t.TempDir()
	g := aboutCorpus(1<<40, c.Manifest)
	w := shards.Window{Shards: 2, Steps: 1 << 30}
	first := launch(t, Config{window: w, Genesis: g.Encode(), Data: c.Path, Pace: slowPace})
	second := launch(t, Config{window: w, Dir: dir, Link: first.link(), Pace: slowPace, EvalBytes: 500, EvalEvery: 1})
	s := second.until("all shards that it needs", func(s status.Snapshot) bool {
		return trains(s) && s.Data.Missing == 0 && !s.Data.Waiting && s.ValBPB > 0
	})
	if s.Data.Needed != 6 || len(fetched(t, dir)) != 6 || s.Data.UsedBytes != 6*400_000 {
		t.Errorf("fetched %d shards, %+v", len(fetched(t, dir)), s.Data)
	}
	first.leave()
	third := launch(t, Config{window: w, Link: second.link(), Pace: slowPace})
	third.until("held-out shards of the second", func(s status.Snapshot) bool { return s.Data != nil && s.Data.Missing <= 4 })
	third.stop()
	<-third.ended
	second.leave()
	for _, file := range fetched(t, dir) {
		if b, err := os.ReadFile(file); err != nil || shards.Sum(b).String()+".bin" != filepath.Base(file) {
			t.Errorf("%s is not what its name says: %v", file, err)
		}
	}
	again := launch(t, Config{window: w, Dir: dir, Pace: slowPace})
	if s := again.until("a step", trains); s.Data.Missing != 0 || s.Data.UsedBytes != 6*400_000 {
		t.Errorf("after a restart: %+v", s.Data)
	}
	again.leave()
}

// What a folder of the user has is taken by what it is, not by what it is called. It may lack the
// rest, and what is damaged in it is fetched.
func TestShardsUnderOtherNames(t *testing.T) {
	t.Parallel()
	c, mine, dir := manyShards(t, 4, 5_000), t.TempDir(), t.TempDir()
	for i, s := range c.Manifest.Shards[:3] {
		b, err := os.ReadFile(shards.ShardFile(c.Path, s.Digest))
		must(t, err)
		if i == 2 {
			b[7]++
		}
		must(t, os.WriteFile(filepath.Join(mine, string(rune('x'+i))+".dat"), b, 0o600))
	}
	first := launch(t, Config{Genesis: aboutCorpus(1<<40, c.Manifest).Encode(), Data: c.Path, Pace: slowPace})
	m := launch(t, Config{Dir: dir, Link: first.link(), Data: mine, Pace: slowPace})
	m.until("what is there", hasEvent("text", "has 2 of the 6 shards"))
	m.until("a step", func(s status.Snapshot) bool { return trains(s) && s.Data.Missing == 0 })
	if n := len(fetched(t, dir)); n != 4 {
		t.Errorf("fetched %d shards, want 4", n)
	}
	m.leave()
	first.leave()
}

// A shard that the disk has damaged is never trained on: the learner waits until a peer has
// given it again.
func TestDamagedShardIsFetchedAgain(t *testing.T) {
	t.Parallel()
	c, dir := manyShards(t, 4, 5_000), t.TempDir()
	first := launch(t, Config{Genesis: aboutCorpus(1<<40, c.Manifest).Encode(), Data: c.Path, Pace: slowPace})
	m := launch(t, Config{Dir: dir, Link: first.link(), Pace: slowPace})
	m.until("all", func(s status.Snapshot) bool { return trains(s) && s.Data.Missing == 0 })
	m.leave()
	for _, file := range fetched(t, dir) {
		b, err := os.ReadFile(file)
		must(t, err)
		b[100]++
		must(t, os.WriteFile(file, b, 0o600))
	}
	m = launch(t, Config{Dir: dir, Link: first.link(), Pace: slowPace})
	m.until("the damage", hasEvent("damaged", "another digest"))
	m.until("a step", trains)
	m.leave()
	first.leave()
}

// Room for less than what is needed at one time is refused, with what is needed. With room for
// that a node deletes what it does not need any more.
func TestDataDisk(t *testing.T) {
	t.Parallel()
	c, dir := manyShards(t, 8, 5_000), t.TempDir()
	g := aboutCorpus(1<<40, c.Manifest)
	w := shards.Window{Shards: 1, Steps: 2}
	first := launch(t, Config{window: w, Genesis: g.Encode(), Data: c.Path, Pace: slowPace})
	link := first.link()
	if err := fails(t, Config{window: w, Link: link, DataDisk: 30_000}); !strings.Contains(err.Error(), "need 39.1 KiB") {
		t.Errorf("error %v", err)
	}
	m := launch(t, Config{window: w, Dir: dir, Link: link, Pace: time.Millisecond, DataDisk: 40_000})
	s := m.until("many windows", func(s status.Snapshot) bool { return s.Step > 40 })
	if s.Data.UsedBytes > 50_000 || s.Data.LimitBytes != 40_000 {
		t.Errorf("%+v", s.Data)
	}
	m.leave()
	first.leave()
}

// A learner whose shard is not there waits, says so, and trains when it is.
func TestLearnerWaitsForShards(t *testing.T) {
	t.Parallel()
	c := toyCorpus(t, "foxes")
	file := shards.ShardFile(c.Path, c.Manifest.Shards[0].Digest)
	away := filepath.Join(t.TempDir(), "away") // in the folder it would be found whatever it is called
	must(t, os.Rename(file, away))
	m := launch(t, Config{Genesis: aboutCorpus(1<<40, c.Manifest).Encode(), Data: c.Path, Pace: slowPace})
	if s := m.until("it waits", hasEvent("waiting for data", "it is not there")); s.Step != 0 {
		t.Errorf("%d steps without data", s.Step)
	}
	must(t, os.Rename(away, file))
	m.until("a step", func(s status.Snapshot) bool { return s.Step > 0 })
	m.leave()
}

// A learner in another process reads the shards that the node fetched for it, at the places that
// the node names: the same tokens as the built-in trainer would. It waits for shards as that does, and
// evaluations read held-out shards alone.
func TestLearnersReadShards(t *testing.T) {
	t.Parallel()
	needsPython(t)
	c, reads, dir := manyShards(t, 6, 5_000), filepath.Join(t.TempDir(), "reads"), t.TempDir()
	g := aboutCorpus(1<<40, c.Manifest)
	w := shards.Window{Shards: 2, Steps: 3}
	first := launch(t, Config{window: w, Genesis: g.Encode(), Data: c.Path, Pace: slowPace})
	m := launch(t, Config{window: w, Dir: dir, Link: first.link(), Learner: "idle --step-seconds 0.01 --reads " + reads, Pace: slowPace, EvalBytes: 300, EvalEvery: 1})
	m.until("steps and an evaluation", func(s status.Snapshot) bool { return s.Step >= 20 && s.ValBPB > 0 })
	m.leave()
	first.leave()
	key, _, err := store.LoadKey(dir)
	must(t, err)
	source, err := shards.NewSource(c.Manifest, w, c.Fetch)
	must(t, err)
	raw, err := os.ReadFile(reads)
	must(t, err)
	steps, evaluations := 0, 0
	for line := range strings.Lines(string(raw)) {
		var read struct {
			Step int64
			Rows [][]int32
		}
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			break // it was ended within its last line
		}
		if read.Step < 0 {
			evaluations++
			checkHeldOut(t, c, read.Rows)
			continue
		}
		steps++
		want := make([]int32, len(read.Rows)*(g.Model.Context+1))
		must(t, source.Batch(t.Context(), g.Seed, wire.PeerIDOf(key), read.Step, len(read.Rows), g.Model.Context, want))
		if got := slices.Concat(read.Rows...); !slices.Equal(got, want) {
			t.Errorf("step %d: another batch", read.Step)
		}
	}
	if steps < 20 || evaluations == 0 {
		t.Errorf("%d steps and %d evaluations were read", steps, evaluations)
	}
}

// checkHeldOut fails unless all rows are of held-out shards.
func checkHeldOut(t *testing.T, c *shards.Dir, rows [][]int32) {
	t.Helper()
	for _, row := range rows {
		found := false
		for _, s := range c.Manifest.HeldOut {
			tokens, err := c.Read(t.Context(), s)
			must(t, err)
			for at := 0; at+len(row) <= len(tokens) && !found; at++ {
				found = slices.Equal(tokens[at:at+len(row)], row)
			}
		}
		if !found {
			t.Error("an evaluation read what is not held out")
		}
	}
}

// Whoever comes and goes, with whichever learner: what a node's folder says was trained on is what
// the rule says, all of it, and nothing that is held out, while evaluations read that all the time.
func TestNobodyTrainsOnWhatIsHeldOut(t *testing.T) {
	t.Parallel()
	c := manyShards(t, 6, 5_000)
	g := aboutCorpus(1<<40, c.Manifest)
	w := shards.Window{Shards: 2, Steps: 3}
	cfg := Config{window: w, Pace: slowPace / 4, EvalBytes: 300, EvalEvery: 1}
	first := launch(t, Config{window: w, Genesis: g.Encode(), Data: c.Path, Pace: slowPace, EvalBytes: 300, EvalEvery: 1})
	dirs := []string{first.cfg.Dir}
	for i := range 3 {
		cfg.Dir, cfg.Link, cfg.Batch, cfg.Learner = t.TempDir(), first.link(), 2+i, ""
		if _, err := exec.LookPath("python3"); i == 2 && err == nil {
			cfg.Learner = "idle --step-seconds 0.001"
		}
		dirs = append(dirs, cfg.Dir)
		for range 2 { // it leaves and comes back
			m := launch(t, cfg)
			before := m.until("its first status", func(status.Snapshot) bool { return true }).Step
			m.until("steps and an evaluation", func(s status.Snapshot) bool { return s.Step >= before+12 && s.ValBPB > 0 })
			m.leave()
		}
	}
	first.leave()
	for _, dir := range dirs {
		checkReads(t, c.Manifest, g, w, dir)
	}
}

// checkReads holds what a folder says of its learner's data against the rule.
func checkReads(t *testing.T, m *shards.Manifest, g genesis.Genesis, w shards.Window, dir string) {
	t.Helper()
	key, _, err := store.LoadKey(dir)
	must(t, err)
	source, err := shards.NewSource(m, w, nil)
	must(t, err)
	held, read := map[shards.Digest]bool{}, map[int64]map[shards.Digest]bool{}
	for _, s := range m.HeldOut {
		held[s.Digest] = true
	}
	raw, err := os.ReadFile(filepath.Join(dir, data.ReadsFile))
	must(t, err)
	for line := range strings.Lines(string(raw)) {
		var r data.Read
		must(t, json.Unmarshal([]byte(line), &r))
		window := r.Step / w.Steps
		if read[window] == nil {
			read[window] = map[shards.Digest]bool{}
		}
		read[window][r.Shard] = true
		if held[r.Shard] {
			t.Errorf("%s: step %d read a shard that is held out", dir, r.Step)
		}
		if !slices.ContainsFunc(source.Window(g.Seed, wire.PeerIDOf(key), r.Step, g.Model.Context), func(s shards.Shard) bool { return s.Digest == r.Shard }) {
			t.Errorf("%s: step %d read a shard outside of its window", dir, r.Step)
		}
	}
	steps := 0
	must(t, store.EachStep(dir, func(s store.Step) {
		steps++
		step, rows := int64(s.Number)-1, int(s.Tokens)/g.Model.Context
		for _, p := range source.Places(g.Seed, wire.PeerIDOf(key), step, rows, g.Model.Context) {
			shard, recorded := m.Shards[p.Shard].Digest, false
			for i := step/w.Steps - 3*int64(w.Shards); i <= step/w.Steps; i++ {
				recorded = recorded || read[i][shard] // when the window first had it
			}
			if !recorded {
				t.Errorf("%s: step %d has a row of a shard that is not recorded", dir, step)
			}
		}
	}))
	if steps < 12 {
		t.Errorf("%s: %d steps", dir, steps)
	}
}

// A joiner fetches what every component of a mixture holds out, and the windows of each. Both nodes read the rows
// that the weights draw, from their own windows alone, and nothing that is held out.
func TestMixture(t *testing.T) {
	t.Parallel()
	large, small, dir := manyShards(t, 12, 5_000), manyShards(t, 6, 7_000), t.TempDir()
	out := filepath.Join(t.TempDir(), "mixed")
	_, err := build.Mix(t.Context(), build.MixConfig{Out: out, Name: "mixed", Corpora: []build.Weighed{{Dir: large.Path, Weight: 3}, {Dir: small.Path, Weight: 1}}})
	must(t, err)
	c, err := shards.OpenDir(out)
	must(t, err)
	g := aboutCorpus(1<<40, c.Manifest)
	w := shards.Window{Shards: 4, Steps: 1 << 30}
	first := launch(t, Config{window: w, Genesis: g.Encode(), Data: c.Path, Pace: slowPace})
	second := launch(t, Config{window: w, Dir: dir, Link: first.link(), Pace: slowPace, EvalBytes: 500, EvalEvery: 1})
	s := second.until("steps and an evaluation", func(s status.Snapshot) bool { return s.Step > 20 && s.Data.Missing == 0 && s.ValBPB > 0 })
	if s.Data.Needed != 4+2*(3+1) || len(fetched(t, dir)) != s.Data.Needed {
		t.Errorf("needs %d shards, fetched %d, want the 4 that are held out and 8 to train on", s.Data.Needed, len(fetched(t, dir)))
	}
	first.until("as many steps", func(s status.Snapshot) bool { return s.Step > 20 })
	second.leave()
	first.leave()
	for _, dir := range []string{dir, first.cfg.Dir} {
		checkReads(t, c.Manifest, g, w, dir)
	}
}

// In a run on own data each learner reads a corpus of its own, which it gives to nobody. The held-out
// shards of the maker are common.
func TestOwnCorpora(t *testing.T) {
	t.Parallel()
	makers, mine, dir := manyShards(t, 4, 5_000), manyShards(t, 3, 5_000), t.TempDir()
	g := aboutCorpus(1<<40, makers.Manifest)
	g.Outer.OwnText = true
	first := launch(t, Config{Genesis: g.Encode(), Data: makers.Path, Pace: slowPace, EvalBytes: 300, EvalEvery: 1})
	link := first.link()
	if err := fails(t, Config{Link: link}); !strings.Contains(err.Error(), "pass --data DIR with a corpus of yours") {
		t.Errorf("error %v", err)
	}
	second := launch(t, Config{Dir: dir, Link: link, Data: mine.Path, Pace: slowPace, EvalBytes: 300, EvalEvery: 1})
	evaluated := func(s status.Snapshot) bool { return s.Step > 5 && s.ValBPB > 0 }
	if s := second.until("steps and an evaluation", evaluated); s.Data.Needed != 2 {
		t.Errorf("needs %d shards, want the two that are held out", s.Data.Needed)
	}
	first.until("steps and an evaluation", evaluated)
	second.leave()
	first.leave()
	for _, f := range []struct {
		dir     string
		own     *shards.Manifest
		fetched int
	}{{first.cfg.Dir, makers.Manifest, 0}, {dir, mine.Manifest, 2}} {
		if n := len(fetched(t, f.dir)); n != f.fetched {
			t.Errorf("%d shards were fetched, want %d", n, f.fetched)
		}
		raw, err := os.ReadFile(filepath.Join(f.dir, data.ReadsFile))
		must(t, err)
		for line := range strings.Lines(string(raw)) {
			var r data.Read
			must(t, json.Unmarshal([]byte(line), &r))
			if !slices.ContainsFunc(f.own.Shards, func(s shards.Shard) bool { return s.Digest == r.Shard }) {
				t.Errorf("step %d read shard %v, which is not its own", r.Step, r.Shard)
			}
		}
	}
}

// An observer that nobody can give the corpus holds and serves the run all the same; one that is given
// it measures with the held-out shards alone.
func TestObserversOfACorpus(t *testing.T) {
	t.Parallel()
	c, dir := manyShards(t, 4, 5_000), t.TempDir()
	g := aboutCorpus(1<<40, c.Manifest)
	alone := launch(t, Config{Genesis: g.Encode(), Observe: true, EvalBytes: 100})
	alone.until("no evaluation", hasEvent("no evaluation", "there is no peer to ask"))
	alone.leave()
	first := launch(t, Config{Genesis: g.Encode(), Data: c.Path, Pace: slowPace})
	m := launch(t, Config{Dir: dir, Link: first.link(), Observe: true, EvalBytes: 100, EvalEvery: 1})
	m.until("an evaluation", func(s status.Snapshot) bool { return s.ValBPB > 0 })
	if n := len(fetched(t, dir)); n != 2 {
		t.Errorf("fetched %d shards, want the two that are held out", n)
	}
	m.leave()
	first.leave()
}
