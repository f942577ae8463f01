package natlab

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/trainer/corpus/shards"
)

const (
	fetchers   = 8
	fetchRate  = 20_000_000 / 8 // bytes/s
	shardBytes = 1 << 20
	// nano is a model so small that deltas are nothing beside shards.
	nano = `{"vocab":256,"hidden":16,"layers":1,"heads":2,"kvheads":1,"intermediate":24,"context":8}`
)

// TestEightJoinersFetch: eight nodes join at once over cables of 20 Mbit/s and fetch what they read from the founder and from
// each other. The founder uploads little more than what they read together, be their windows the same in part or apart.
func TestEightJoinersFetch(t *testing.T) {
	for _, c := range []struct {
		name   string
		shards int  // to train on
		apart  bool // no two joiners read the same shard
	}{{"overlapping windows", 12, false}, {"disjoint windows", 128, true}} {
		t.Run(c.name, func(t *testing.T) { eightFetch(t, c.shards, c.apart) })
	}
}

func eightFetch(t *testing.T, count int, apart bool) {
	machines := []string{"founder"}
	for i := range fetchers {
		machines = append(machines, "j"+strconv.Itoa(i))
	}
	l := alone(t, Net{Machines: machines})
	corpus := randomCorpus(t, count)
	model := filepath.Join(t.TempDir(), "nano.json")
	must(t, os.WriteFile(model, []byte(nano), 0o600))
	must(t, l.Run("--model", model, "--data", corpus.Path, "--tokens", "1e8"))
	distinct := chooseKeys(t, l, corpus.Manifest, machines[1:], apart)

	for _, m := range machines {
		must(t, l.SlowBoth(m, fetchRate))
	}
	founder, err := l.First("founder", append(quick, "--data", corpus.Path)...)
	must(t, err)
	link := linkOf(t, founder)
	before, err := l.Sent("founder")
	must(t, err)
	began := time.Now()
	var all sync.WaitGroup
	first := make([]time.Duration, fetchers)
	for i, m := range machines[1:] {
		n := join(t, l, m, link)
		all.Go(func() {
			ctx := within(t, 5*stepTimeout)
			_, err := n.Await(ctx, "a step", func(s status.Snapshot) bool { return s.Step > 0 })
			first[i] = time.Since(began)
			if err == nil {
				_, err = n.Await(ctx, "all shards", func(s status.Snapshot) bool { return s.Data != nil && s.Data.Needed > 0 && s.Data.Missing == 0 })
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	after, err := l.Sent("founder")
	must(t, err)
	bytes := len(distinct) * shardBytes
	ratio := float64(after-before) / float64(bytes)
	t.Logf("the founder sent %.2f times the %d MB that eight joiners read; all had it after %.1f s of at least %.1f, and the last one took its first step after %.1f s",
		ratio, bytes>>20, took.Seconds(), float64(bytes)/fetchRate, slices.Max(first).Seconds())
	if ratio > 1.5 {
		t.Errorf("the founder sent %.2f times the distinct bytes, at most 1.5", ratio)
	}
	for _, m := range machines[1:] {
		files, err := filepath.Glob(l.path(m) + "/corpus/shards/*.bin")
		must(t, err)
		for _, file := range files {
			if b, err := os.ReadFile(file); err != nil || shards.Sum(b).String()+".bin" != filepath.Base(file) {
				t.Errorf("%s is not what its name says: %v", file, err)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// randomCorpus is a corpus of so many shards of random bytes, and one that is held out.
func randomCorpus(t *testing.T, count int) *shards.Dir {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Dir(shards.ShardFile(dir, shards.Digest{})), 0o755))
	m := &shards.Manifest{Format: shards.Format, Name: "random", Tokenizer: shards.ByteTokenizer(), Width: 2}
	draw := rand.New(rand.NewPCG(3, uint64(count)))
	for i := range 1 + count {
		ids := make([]int32, shardBytes/2)
		for j := range ids {
			ids[j] = draw.Int32N(256)
		}
		b := shards.AppendTokens(nil, 2, ids)
		s := shards.Shard{Digest: shards.Sum(b), Tokens: int64(len(ids)), Bytes: int64(len(ids))}
		must(t, os.WriteFile(shards.ShardFile(dir, s.Digest), b, 0o600))
		if i == 0 {
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

// chooseKeys gives machines keys, with windows that have no shard in common if they are to be apart. It
// returns the shards that they fetch: what is held out, their windows, and those that come next.
func chooseKeys(t *testing.T, l *Lab, m *shards.Manifest, machines []string, apart bool) map[shards.Digest]bool {
	document, err := os.ReadFile(l.path("genesis"))
	must(t, err)
	g, err := genesis.Decode(document)
	must(t, err)
	source, err := shards.NewSource(m, g.Window(m), nil)
	must(t, err)
	taken := map[shards.Digest]bool{}
	for _, machine := range machines {
		for {
			key, _, err := store.LoadKey(l.path(machine))
			must(t, err)
			var list []shards.Shard
			for ahead := range 2 {
				list = append(list, source.Ahead(g.Seed, wire.PeerIDOf(key), 0, g.Model.Context, ahead)...)
			}
			if apart && slices.ContainsFunc(list, func(s shards.Shard) bool { return taken[s.Digest] }) {
				must(t, os.RemoveAll(l.path(machine)))
				continue
			}
			for _, s := range list {
				taken[s.Digest] = true
			}
			break
		}
	}
	for _, s := range m.HeldOut {
		taken[s.Digest] = true
	}
	return taken
}
