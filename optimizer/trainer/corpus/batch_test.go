package corpus

import (
	"context"
	"encoding/hex"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// background is for where context is a number of tokens.
var background = context.Background()

// TestBatchStaysInTrain draws from a corpus whose bytes count up, so that each
// row shows where it came from.
func TestBatchStaysInTrain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		context := rapid.IntRange(1, 20).Draw(t, "context")
		size := rapid.IntRange(10*(context+1), 256).Draw(t, "size")
		rows := rapid.IntRange(1, 8).Draw(t, "rows")
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i)
		}
		c := New("count", data)
		if err := c.Fits(context); err != nil {
			t.Fatal(err)
		}
		var author [32]byte
		author[0] = rapid.Byte().Draw(t, "author")
		dst := make([]int32, rows*(context+1))
		if err := c.Batch(background, rapid.Uint64().Draw(t, "seed"), author, rapid.Int64().Draw(t, "step"), rows, context, dst); err != nil {
			t.Fatal(err)
		}
		for row := range slices.Chunk(dst, context+1) {
			if last := int(row[context]); last >= len(c.Train()) {
				t.Fatalf("row ends at byte %d of %d to train on", last, len(c.Train()))
			}
			for i := range context {
				if row[i+1] != row[i]+1 {
					t.Fatalf("row is no stretch of the corpus: %v", row)
				}
			}
		}
	})
}

// TestBatchReachesBothEnds: the first and the last byte to train on are drawn.
func TestBatchReachesBothEnds(t *testing.T) {
	c := New("count", []byte("0123456789abcdefghij"))
	dst := make([]int32, 1000*2)
	if err := c.Batch(background, 1, [32]byte{}, 0, 1000, 1, dst); err != nil {
		t.Fatal(err)
	}
	if low, high := slices.Min(dst), slices.Max(dst); low != '0' || high != 'h' {
		t.Errorf("drew from %q to %q", low, high)
	}
}

func TestBatchDependsOnEachArgument(t *testing.T) {
	c := New("zeros and ones", []byte(pattern(4096)))
	draw := func(seed uint64, author byte, step int64) []int32 {
		dst := make([]int32, 4*17)
		if err := c.Batch(background, seed, [32]byte{author}, step, 4, 16, dst); err != nil {
			t.Fatal(err)
		}
		return dst
	}
	base := draw(1, 2, 3)
	if !slices.Equal(base, draw(1, 2, 3)) {
		t.Error("the same arguments drew another batch")
	}
	for i, other := range [][]int32{draw(2, 2, 3), draw(1, 3, 3), draw(1, 2, 4)} {
		if slices.Equal(base, other) {
			t.Errorf("argument %d makes no difference", i)
		}
	}
}

// TestBatchGolden pins the draw: learners on different versions and machines
// must agree on what a step reads.
func TestBatchGolden(t *testing.T) {
	c := New("pattern", []byte(pattern(4096)))
	dst := make([]int32, 2*9)
	if err := c.Batch(background, 7, [32]byte{1, 2, 3}, 42, 2, 8, dst); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(dst))
	for i, token := range dst {
		b[i] = byte(token)
	}
	const want = "c0d3e6f49ea8b64370200b16fcdea0866b50"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("batch is %s, want %s", got, want)
	}
}

// pattern returns n bytes that do not repeat soon.
func pattern(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*i>>3 ^ i)
	}
	return string(b)
}
