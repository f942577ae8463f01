package shards

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// mix divides the shards of a corpus evenly among components of these weights.
func (m *Manifest) mix(weights ...uint64) {
	for i, w := range weights {
		part := func(list []Shard) int { return len(list)*(i+1)/len(weights) - len(list)*i/len(weights) }
		m.Mixture = append(m.Mixture, Component{Name: string(rune('a' + i)), Digest: Digest{byte(i + 1)}, Weight: w,
			HeldOut: part(m.HeldOut), Shards: part(m.Shards)})
	}
}

// mixed is a mixture that validates, of two corpora with three and one shard.
func mixed() *Manifest {
	m := &Manifest{Format: Format, Name: "mixed", Tokenizer: ByteTokenizer(), Width: 2}
	for i := range 2 {
		m.HeldOut = append(m.HeldOut, Shard{Digest: Digest{1, byte(i)}, Tokens: 5, Bytes: 5})
	}
	for i := range 4 {
		m.Shards = append(m.Shards, Shard{Digest: Digest{2, byte(i)}, Tokens: 50, Bytes: 50})
	}
	m.Mixture = []Component{
		{Name: "prose", Licence: "CC0-1.0", Digest: Digest{3}, Weight: 3, HeldOut: 1, Shards: 3, Mirrors: []string{"https://example.org/prose"}},
		{Name: "code", Licence: "BSD-3-Clause", Digest: Digest{4}, Weight: 1, HeldOut: 1, Shards: 1},
	}
	return m
}

func TestMixtureIsCanonical(t *testing.T) {
	b := mixed().Encode()
	m, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.Encode(), b) {
		t.Error("a mixture that was read has another form")
	}
	if !strings.Contains(string(b), `"atoll_corpus": 1`) || strings.Contains(string(b), "null") {
		t.Errorf("a mixture is\n%s", b)
	}
	parts := m.Parts()
	if pass := m.Pass(); pass != 200 { // of prose 150 tokens are read by then, of code all 50
		t.Errorf("a pass has %d tokens, want 200", pass)
	}
	if len(parts) != 2 || parts[0].Share != 0.75 || len(parts[0].Shards) != 3 || parts[1].HeldOut[0] != m.HeldOut[1] || parts[1].Shards[0] != m.Shards[3] {
		t.Errorf("its parts are %+v", parts)
	}
}

func TestMixtureValidates(t *testing.T) {
	for want, change := range map[string]func(*Manifest){
		"its weight is 0":                     func(m *Manifest) { m.Mixture[1].Weight = 0 },
		"its weight is 1000001":               func(m *Manifest) { m.Mixture[1].Weight = MaxWeight + 1 },
		"it mixes 1 corpora":                  func(m *Manifest) { m.Mixture = m.Mixture[:1] },
		"it mixes 17 corpora":                 func(m *Manifest) { m.Mixture = slices.Repeat(m.Mixture[:1], 17) },
		"is there twice":                      func(m *Manifest) { m.Mixture[1].Digest = m.Mixture[0].Digest },
		"more shards than the corpus":         func(m *Manifest) { m.Mixture[0].Shards = math.MaxInt },
		"have 3 shards and 2 held out":        func(m *Manifest) { m.Mixture[0].Shards = 2 },
		"have 4 shards and 3 held out":        func(m *Manifest) { m.Mixture[0].HeldOut = 2 },
		"none that are held out":              func(m *Manifest) { m.Mixture[0].HeldOut = 0 },
		"mirror \"http://example.org\"":       func(m *Manifest) { m.Mixture[0].Mirrors = []string{"http://example.org"} },
		"control character":                   func(m *Manifest) { m.Mixture[0].Name = "\x1b" },
		"it has format 3, this program reads": func(m *Manifest) { m.Format = 3 },
	} {
		m := mixed()
		change(m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}

func TestMirrorsOfComponents(t *testing.T) {
	m := mixed()
	if m.Mirrors = nil; !m.HasMirrors() {
		t.Error("a component has a mirror, the corpus none")
	}
	m.Mirrors = []string{"https://example.org/all"}
	for shard, want := range map[Digest]string{
		m.Shards[2].Digest: "https://example.org/all https://example.org/prose", m.HeldOut[0].Digest: "https://example.org/all https://example.org/prose",
		m.Shards[3].Digest: "https://example.org/all", {9}: "https://example.org/all",
	} {
		if got := strings.Join(m.MirrorsOf(shard), " "); got != want {
			t.Errorf("shard %v has the mirrors %s, want %s", shard, got, want)
		}
	}
}

// TestSharesFollowWeights: of many rows each component has its share, and the more rows, the closer to it. The draws
// follow from fixed seeds, so the outcome is the same each time.
func TestSharesFollowWeights(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for seed := range uint64(40) {
		weights := make([]uint64, 2+random.IntN(4))
		for i := range weights {
			weights[i] = 1 + random.Uint64N(1000)
		}
		m, fetch := madeUp(slices.Repeat([]int{30}, 3*len(weights))...)
		m.mix(weights...)
		s := source(t, m, Window{Shards: 1 + random.IntN(8), Steps: 2}, fetch)
		counts, drawn := make([]int, len(weights)), 0
		for step := range int64(200) {
			for _, p := range s.Places(seed, author, step, 500, 8) {
				counts[p.Shard/3]++
				drawn++
			}
			if n := step + 1; n != 2 && n != 20 && n != 200 {
				continue
			}
			for i, p := range m.Parts() {
				deviation := math.Sqrt(p.Share * (1 - p.Share) / float64(drawn))
				if got := float64(counts[i]) / float64(drawn); math.Abs(got-p.Share) > 5*deviation {
					t.Errorf("seed %d: component %d has %.5f of %d rows, its weight is %.5f", seed, i, got, drawn, p.Share)
				}
			}
		}
	}
}

// TestMixtureIsPure: rows of a mixture depend on nothing but seed, author, step and number, and each
// is a stretch of a shard in the window.
func TestMixtureIsPure(t *testing.T) {
	m, fetch := madeUp(50, 60, 70, 55, 61, 80, 90, 44, 71)
	m.mix(5, 2, 1)
	w := Window{Shards: 4, Steps: 3}
	used := source(t, m, w, fetch)
	rapid.Check(t, func(t *rapid.T) {
		step, rows := rapid.Int64Range(0, 1<<50).Draw(t, "step"), rapid.IntRange(1, 9).Draw(t, "rows")
		fresh, _ := NewSource(m, w, fetch)
		got, want := make([]int32, rows*9), make([]int32, 9*9)
		if err := used.Batch(t.Context(), 7, author, step, rows, 8, got); err != nil {
			t.Fatal(err)
		}
		if err := fresh.Batch(t.Context(), 7, author, step, 9, 8, want); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want[:rows*9]) {
			t.Fatalf("step %d: %v, want %v", step, got, want[:rows*9])
		}
		window := fresh.Window(7, author, step, 8)
		if len(window) > fresh.WindowShards() || len(used.held) > used.WindowShards() {
			t.Fatalf("a window of %d shards, of at most %d, %d held", len(window), fresh.WindowShards(), len(used.held))
		}
		for r, p := range fresh.Places(7, author, step, rows, 8) {
			if !slices.Contains(window, m.Shards[p.Shard]) || got[9*r] != int32(1000*p.Shard)+int32(p.Start) {
				t.Fatalf("row %d begins with %d, at %v", r, got[9*r], p)
			}
		}
	})
}

// TestWhatIsAheadComes: between two moves a window is the same, and what comes into it was in it or ahead of it.
func TestWhatIsAheadComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint64Range(1, 50), 1, 4).Draw(t, "weights")
		m, fetch := madeUp(slices.Repeat([]int{30}, rapid.IntRange(1, 9).Draw(t, "shards")*len(weights))...)
		if len(weights) > 1 {
			m.mix(weights...)
		}
		s, err := NewSource(m, Window{rapid.IntRange(1, 6).Draw(t, "window"), rapid.Int64Range(1, 4).Draw(t, "steps")}, fetch)
		if err != nil {
			t.Fatal(err)
		}
		step := rapid.Int64Range(0, 1000).Draw(t, "step")
		now, next := s.Window(7, author, step, 8), s.Window(7, author, step+1, 8)
		if s.Moves(step) == s.Moves(step+1) && !slices.Equal(now, next) {
			t.Fatalf("the window of step %d moved", step)
		}
		for _, shard := range next {
			if !slices.Contains(now, shard) && !slices.Contains(s.Ahead(7, author, step, 8, 1), shard) {
				t.Fatalf("shard %v of step %d was not ahead", shard.Digest, step+1)
			}
		}
	})
}

// TestRareComponentMovesSlowly: a window moves with what is read from it, so that all shards are read about as often as
// those of other components of their weight.
func TestRareComponentMovesSlowly(t *testing.T) {
	m, fetch := madeUp(slices.Repeat([]int{30}, 20)...)
	m.mix(9, 1)
	s := source(t, m, Window{Shards: 2, Steps: 5}, fetch)
	windows := map[int]map[Digest]bool{0: {}, 1: {}}
	for step := range int64(5 * 10 * 10 / 9) { // 10 moves of the first
		for i, shard := range s.Window(7, author, step, 8) {
			windows[i][shard.Digest] = true
		}
	}
	if len(windows[0]) != 10 || len(windows[1]) > 2 {
		t.Errorf("%d and %d shards were in the windows, want 10 and at most 2", len(windows[0]), len(windows[1]))
	}
}

// TestEveryComponentFits: a mixture with a component whose shards are too short draws nothing.
func TestEveryComponentFits(t *testing.T) {
	m, fetch := madeUp(50, 10)
	m.mix(1, 1)
	s := source(t, m, Window{Shards: 2, Steps: 1}, fetch)
	for _, err := range []error{s.Fits(20), s.Batch(t.Context(), 1, author, 0, 1, 20, make([]int32, 21))} {
		if err == nil || !strings.Contains(err.Error(), "corpus b: its longest shard has 10 tokens") {
			t.Errorf("error %v of a component without a row", err)
		}
	}
}

// TestGoldenMixedRows: as TestGoldenRows, for mixtures.
func TestGoldenMixedRows(t *testing.T) {
	m, fetch := madeUp(50, 60, 70, 55, 61, 80, 90, 44)
	m.mix(3, 1)
	s := source(t, m, Window{Shards: 3, Steps: 10}, fetch)
	var got []int32
	for _, step := range []int64{0, 9, 10, 69, 70, 1 << 40} {
		rows := batch(t, s, step, 2, 8)
		got = append(got, rows[0], rows[9])
	}
	want := []int32{20, 3017, 3020, 3034, 3017, 24, 1023, 7028, 1009, 7020, 15, 2025}
	if !slices.Equal(got, want) {
		t.Errorf("rows begin with %v, want %v", got, want)
	}
}
