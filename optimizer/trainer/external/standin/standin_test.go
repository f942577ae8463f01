package standin

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"atoll/optimizer"
	"atoll/optimizer/trainer/external"
	"atoll/tensor"
)

// envStandIn makes the test binary a stand-in.
const envStandIn = "ATOLL_TEST_STANDIN"

func TestMain(m *testing.M) {
	if how := os.Getenv(envStandIn); how != "" {
		if err := Serve(Config{Step: time.Millisecond, InPlace: how == "in place"}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// start starts a stand-in for so many values.
func start(t testing.TB, how string, values int) *external.Learner {
	t.Helper()
	t.Setenv(envStandIn, how)
	l, err := external.Start(context.Background(), external.Config{
		Command: external.Run{Args: []string{os.Args[0]}}, Dir: t.TempDir(), Rows: 2, Context: 8, MostTokens: 100,
		Views:  tensor.Layout([]tensor.Spec{{Name: "w", Shape: []int{values}}}),
		Starts: func(_ int64, rows int) ([]uint64, error) { return make([]uint64, rows), nil }, Log: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// It does all that a node asks of a learner, with values of its own and in place.
func TestStandIn(t *testing.T) {
	const values = 1000
	for _, how := range []string{"copy", "in place"} {
		l := start(t, how, values)
		for i := range l.Params() {
			l.Params()[i] = 1
		}
		for range 3 {
			if res, err := l.Step(t.Context(), 0.1); err != nil || res.Tokens != 16 {
				t.Fatal(res, err)
			}
		}
		if err := l.Flush([]optimizer.Span{{Len: values}}); err != nil {
			t.Fatal(err)
		}
		same := 0
		for _, x := range l.Params() {
			if x == 1 {
				same++ // by chance: three draws together were next to nothing
			}
		}
		if same > values/100 {
			t.Fatalf("%s: %d of %d values are as before", how, same, values)
		}
		state, err := l.State()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.SetState(state); err != nil || l.Steps() != 3 {
			t.Errorf("%s: %v, %d steps", how, err, l.Steps())
		}
	}
}

// A fragment of a model of 124 million parameters in 24 crosses the boundary in about the time of
// a copy.
const fragment = 124_000_000 / 24

func BenchmarkFlush(b *testing.B) {
	l := start(b, "copy", fragment)
	if _, err := l.Step(context.Background(), 0.1); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(4 * fragment)
	for b.Loop() {
		if err := l.Flush([]optimizer.Span{{Len: fragment}}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	l := start(b, "copy", fragment)
	if _, err := l.Step(context.Background(), 0.1); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(4 * fragment)
	for b.Loop() {
		l.Load([]optimizer.Span{{Len: fragment}})
	}
}

// BenchmarkCopy is what the others are compared with.
func BenchmarkCopy(b *testing.B) {
	from, to := make([]float32, fragment), make([]float32, fragment)
	for i := range from {
		from[i] = float32(i)
	}
	b.SetBytes(4 * fragment)
	for b.Loop() {
		copy(to, from)
	}
}
