package shards

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// madeUp is a corpus of shards of these lengths, whose token i of shard n is n*1000 + i.
func madeUp(lengths ...int) (*Manifest, Fetch) {
	m := &Manifest{Name: "made up", Width: 4, Tokenizer: Tokenizer{Size: 1 << 21}}
	content := map[Digest][]byte{}
	for n, length := range lengths {
		tokens := make([]int32, length)
		for i := range tokens {
			tokens[i] = int32(1000*n + i)
		}
		b := AppendTokens(nil, 4, tokens)
		s := Shard{Digest: Sum(b), Tokens: int64(length)}
		content[s.Digest] = b
		m.Shards = append(m.Shards, s)
	}
	return m, func(ctx context.Context, s Shard) ([]byte, error) { return content[s.Digest], ctx.Err() }
}

func source(t testing.TB, m *Manifest, w Window, fetch Fetch) *Source {
	t.Helper()
	s, err := NewSource(m, w, fetch)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var author = [32]byte{1, 2, 3}

func batch(t testing.TB, s *Source, step int64, rows, context int) []int32 {
	t.Helper()
	dst := make([]int32, rows*(context+1))
	if err := s.Batch(t.Context(), 7, author, step, rows, context, dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

// TestRowsAreStretchesOfTheWindow: every row is tokens that follow each other in one shard
// of the window of its step.
func TestRowsAreStretchesOfTheWindow(t *testing.T) {
	m, fetch := madeUp(50, 60, 9, 70, 55, 61)
	s := source(t, m, Window{Shards: 2, Steps: 3}, fetch)
	const context = 9
	seen := map[int32]bool{}
	for step := range int64(60) {
		var window []int32
		for _, shard := range s.Window(7, author, step, context) {
			window = append(window, int32(slices.Index(m.Shards, shard)))
		}
		got := batch(t, s, step, 5, context)
		for r := range 5 {
			row := got[r*(context+1):][:context+1]
			for i, id := range row {
				if id != row[0]+int32(i) {
					t.Fatalf("step %d: row %v is no stretch", step, row)
				}
			}
			if shard := row[0] / 1000; !slices.Contains(window, shard) || row[0]/1000 != row[context]/1000 {
				t.Fatalf("step %d: row %v of a window %v", step, row, window)
			}
			seen[row[0]/1000] = true
		}
	}
	if len(seen) != 5 || seen[2] {
		t.Errorf("read shards %v: want all but 2, which is shorter than a row", seen)
	}
}

// TestPureFunction: what was asked before, how many rows are asked for and which shards are
// held do not change a row.
func TestPureFunction(t *testing.T) {
	m, fetch := madeUp(50, 60, 70, 55, 61, 80, 90)
	s := source(t, m, Window{Shards: 3, Steps: 2}, fetch)
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.Int64Range(0, 1000).Draw(t, "step")
		rows := rapid.IntRange(1, 6).Draw(t, "rows")
		got, want := make([]int32, rows*9), make([]int32, 6*9)
		fresh, _ := NewSource(m, Window{Shards: 3, Steps: 2}, fetch)
		if err := errors.Join(s.Batch(context.Background(), 7, author, step, rows, 8, got),
			fresh.Batch(context.Background(), 7, author, step, 6, 8, want)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want[:rows*9]) {
			t.Fatalf("step %d: %v, want %v", step, got, want[:rows*9])
		}
	})
}

// TestEveryCycleHasEveryShard, and two cycles or two authors have them in another order.
func TestEveryCycleHasEveryShard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 70).Draw(t, "shards")
		lengths := slices.Repeat([]int{20}, n)
		m, _ := madeUp(lengths...)
		d := newDraws(m, Window{Shards: 1, Steps: 1}, 3, author, 4)
		cycle := rapid.Uint64Range(0, 5).Draw(t, "cycle")
		var order []int
		for i := range n {
			order = append(order, d.order(d.components[0], cycle*uint64(n)+uint64(i)))
		}
		sorted := slices.Sorted(slices.Values(order))
		for i := range n {
			if sorted[i] != i {
				t.Fatalf("a cycle of %d shards has %v", n, order)
			}
		}
	})
	m, _ := madeUp(slices.Repeat([]int{20}, 40)...)
	order := func(author [32]byte, cycle uint64) (list []int) {
		d := newDraws(m, Window{Shards: 1, Steps: 1}, 3, author, 4)
		for i := range uint64(40) {
			list = append(list, d.order(d.components[0], 40*cycle+i))
		}
		return list
	}
	if slices.Equal(order(author, 0), order(author, 1)) || slices.Equal(order(author, 0), order([32]byte{9}, 0)) {
		t.Error("two cycles or two authors have one order")
	}
}

// TestPlacesAreEvenlyDrawn: each place of a window is drawn about as often.
func TestPlacesAreEvenlyDrawn(t *testing.T) {
	m, fetch := madeUp(8, 12)
	s := source(t, m, Window{Shards: 2, Steps: 1}, fetch)
	const rows = 16_000
	counts := map[int32]int{}
	got := batch(t, s, 0, rows, 4)
	for r := range rows {
		counts[got[5*r]]++
	}
	if len(counts) != 4+8 {
		t.Errorf("rows begin at %d places, want 12", len(counts))
	}
	for place, n := range counts {
		if want := rows / 12; n < want*8/10 || n > want*12/10 {
			t.Errorf("place %d was drawn %d times, want about %d", place, n, want)
		}
	}
}

// TestGoldenRows: other programs draw the same rows. What is here cannot change while runs
// go on.
func TestGoldenRows(t *testing.T) {
	m, fetch := madeUp(50, 60, 70, 55, 61, 80, 90)
	s := source(t, m, Window{Shards: 3, Steps: 10}, fetch)
	var got []int32
	for _, step := range []int64{0, 9, 10, 69, 70, 1 << 40} {
		rows := batch(t, s, step, 2, 8)
		got = append(got, rows[0], rows[9])
	}
	want := []int32{5047, 6015, 6021, 6053, 6067, 3046, 3006, 3016, 5002, 5002, 6026, 33}
	if !slices.Equal(got, want) {
		t.Errorf("rows begin with %v, want %v", got, want)
	}
}

// TestWaitsForTheRightShard: a shard that does not come, or is another one, ends a batch
// with an error, and the same batch comes after it.
func TestWaitsForTheRightShard(t *testing.T) {
	m, fetch := madeUp(50, 60, 70)
	want := batch(t, source(t, m, Window{Shards: 3, Steps: 1}, fetch), 5, 4, 8)
	failing := errors.New("the link is down")
	answers := []func(context.Context, Shard) ([]byte, error){
		func(context.Context, Shard) ([]byte, error) { return nil, failing },
		func(context.Context, Shard) ([]byte, error) { return []byte("junk"), nil },
		func(ctx context.Context, s Shard) ([]byte, error) {
			b, err := fetch(ctx, s)
			b = slices.Clone(b)
			b[0] ^= 1
			return b, err
		},
	}
	s := source(t, m, Window{Shards: 3, Steps: 1}, func(ctx context.Context, shard Shard) ([]byte, error) {
		if len(answers) == 0 {
			return fetch(ctx, shard)
		}
		next := answers[0]
		answers = answers[1:]
		return next(ctx, shard)
	})
	dst := make([]int32, 4*9)
	for _, text := range []string{"the link is down", "has 4 bytes", "damaged"} {
		if err := s.Batch(t.Context(), 7, author, 5, 4, 8, dst); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want one that says %q", err, text)
		}
	}
	if got := batch(t, s, 5, 4, 8); !slices.Equal(got, want) {
		t.Errorf("after errors the batch is %v, want %v", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fresh := source(t, m, Window{Shards: 3, Steps: 1}, fetch)
	if err := fresh.Batch(ctx, 7, author, 5, 4, 8, dst); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of a batch that nobody wants", err)
	}
}

func TestSourceHoldsItsWindow(t *testing.T) {
	m, fetch := madeUp(slices.Repeat([]int{30}, 20)...)
	s := source(t, m, Window{Shards: 3, Steps: 2}, fetch)
	for step := range int64(100) {
		batch(t, s, step, 10, 8)
		if len(s.held) > 3 {
			t.Fatalf("%d shards are held, of a window of 3", len(s.held))
		}
	}
}

func TestFits(t *testing.T) {
	m, fetch := madeUp(50, 60)
	s := source(t, m, Window{Shards: 3, Steps: 1}, fetch)
	if err := s.Fits(59); err != nil {
		t.Error(err)
	}
	if err := s.Fits(60); err == nil || !strings.Contains(err.Error(), "needs 61") {
		t.Errorf("error %v of a context that is too long", err)
	}
	if err := s.Batch(t.Context(), 1, author, 0, 1, 60, make([]int32, 61)); err == nil {
		t.Error("there is a batch of rows that are longer than all shards")
	}
	for _, w := range []Window{{0, 1}, {1, 0}} {
		if _, err := NewSource(m, w, fetch); err == nil {
			t.Errorf("window %v was taken", w)
		}
	}
}

func BenchmarkBatch(b *testing.B) {
	m, fetch := madeUp(slices.Repeat([]int{1 << 20}, 4)...)
	s := source(b, m, Window{Shards: 4, Steps: 1000}, fetch)
	const rows, context = 64, 1024
	dst := make([]int32, rows*(context+1))
	b.SetBytes(rows * context)
	for step := int64(0); b.Loop(); step++ {
		if err := s.Batch(b.Context(), 7, author, step%1000, rows, context, dst); err != nil {
			b.Fatal(err)
		}
	}
}
