package token

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func TestByte(t *testing.T) {
	text := []byte("a\x00\xffé")
	ids := Byte.NewEncoder().Append(nil, text)
	if want := []int32{'a', 0, 0xff, 0xc3, 0xa9}; !slices.Equal(ids, want) {
		t.Errorf("ids %v, want %v", ids, want)
	}
	if got := Decode(Byte, nil, append(ids, 256, -1)); !bytes.Equal(got, text) {
		t.Errorf("decoded to %q, want %q", got, text)
	}
	if _, ok := Byte.End(); ok || Byte.Size() != 256 {
		t.Errorf("the byte tokenizer has %d tokens, and an end: %v", Byte.Size(), ok)
	}
}

// TestBytesComeBack: any bytes, UTF-8 or not, come back where the text is not normalized.
func TestBytesComeBack(t *testing.T) {
	for _, name := range familyFiles {
		tokenizer := load(t, familyFile(name))
		if tokenizer.family.normal == "NFC" {
			continue
		}
		rapid.Check(t, func(t *rapid.T) {
			text := []byte(rapid.String().Draw(t, "text"))
			text = append(text, rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")...)
			ids := tokenizer.NewEncoder().Append(nil, text)
			if got := Decode(tokenizer, nil, ids); !bytes.Equal(got, text) {
				t.Fatalf("%s: %q came back as %q", name, text, got)
			}
		})
	}
}

// TestEncoderRemembers: what an encoder met before does not change what comes next, even
// beyond the words that it keeps.
func TestEncoderRemembers(t *testing.T) {
	tokenizer := load(t, familyFile("llama3"))
	old := tokenizer.NewEncoder()
	random := newTexts(2)
	for len(old.(*encoder).known) < maxKnownWords-50 {
		old.Append(nil, []byte(random.next()))
	}
	for range 200 {
		text := []byte(random.next())
		if got, want := old.Append(nil, text), tokenizer.NewEncoder().Append(nil, text); !slices.Equal(got, want) {
			t.Fatalf("%q: ids %v of an old encoder, %v of a new one", text, got, want)
		}
	}
}

// TestMergerIsTheNaiveOne compares with the definition: the first merge of all, leftmost,
// again and again.
func TestMergerIsTheNaiveOne(t *testing.T) {
	tokenizer := load(t, familyFile("gpt2"))
	var m merger
	rapid.Check(t, func(t *rapid.T) {
		word := []byte(rapid.StringMatching(`[ithes n]{1,40}|(the|in| a|ll)+`).Draw(t, "word"))
		if len(word) == 0 {
			return
		}
		if got, want := merged(&m, tokenizer, word), naive(tokenizer, word); !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", word, got, want)
		}
	})
}

func merged(m *merger, tokenizer *BPE, word []byte) []int32 {
	symbols := m.symbols[:0]
	for _, b := range word {
		symbols = add(symbols, tokenizer.bytes[b])
	}
	return m.append(nil, symbols, tokenizer.merges)
}

func naive(tokenizer *BPE, word []byte) []int32 {
	var ids []int32
	for _, b := range word {
		ids = append(ids, tokenizer.bytes[b])
	}
	return naiveMerges(tokenizer, ids)
}

func naiveMerges(tokenizer *BPE, ids []int32) []int32 {
	for {
		best, at := merge{rank: 1 << 30}, -1
		for i := range len(ids) - 1 {
			if found, ok := tokenizer.merges.find(pair{ids[i], ids[i+1]}); ok && found.rank < best.rank {
				best, at = found, i
			}
		}
		if at < 0 {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, best.id)
	}
}

// TestLongWord: a word of a million bytes takes no time that grows with its square.
func TestLongWord(t *testing.T) {
	tokenizer := load(t, familyFile("gpt2"))
	word := strings.Repeat("the", 300_000)
	if got := Decode(tokenizer, nil, tokenizer.NewEncoder().Append(nil, []byte(word))); string(got) != word {
		t.Error("a long word did not come back")
	}
}

// TestClassesKnowWhatGoKnows: the tables have newer runes than a release of Go, and
// otherwise its own.
func TestClassesKnowWhatGoKnows(t *testing.T) {
	c := runeClasses()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf, unicode.Co) {
			continue // newer than this Go
		}
		want := other
		switch {
		case unicode.IsLetter(r):
			want = letter
		case unicode.IsNumber(r):
			want = number
		case unicode.IsSpace(r):
			want = space
		}
		if got, _ := c.at([]byte(string(r))); got != want {
			t.Fatalf("%U has class %d, and %d in Go", r, got, want)
		}
	}
}

// TestNFC compares with x/text, on the marks that both know and not more of them in a row
// than x/text leaves together.
func TestNFC(t *testing.T) {
	c := composing()
	rapid.Check(t, func(t *rapid.T) {
		runes := rapid.SliceOfN(rapid.OneOf(
			rapid.RuneFrom(nil, rangeTable(0x20, 0x7e)),
			rapid.RuneFrom(nil, rangeTable(0xc0, 0x24f)),
			rapid.RuneFrom(nil, rangeTable(0x300, 0x36f)),
			rapid.RuneFrom(nil, rangeTable(0x1100, 0x11ff)),
			rapid.RuneFrom(nil, rangeTable(0xac00, 0xd7a3)),
			rapid.RuneFrom(nil, rangeTable(0x1f00, 0x1fff)),
			rapid.RuneFrom(nil, rangeTable(0x900, 0x9ff)),
			rapid.RuneFrom(nil, rangeTable(0xf900, 0xfb4f)),
		), 0, 25).Draw(t, "runes")
		text := []byte(string(runes))
		if bytes.ContainsFunc(text, func(r rune) bool { return r == 0x9fe }) {
			return // a mark of Unicode 11
		}
		if got, want := c.append(nil, text), norm.NFC.Bytes(text); !bytes.Equal(got, want) {
			t.Fatalf("%+q became %+q, want %+q", text, got, want)
		}
	})
	if got := string(c.append(nil, []byte("e\u0301\xff\u0301e\u0301"))); got != "é\xff\u0301é" {
		t.Errorf("bytes that are not UTF-8 became %+q", got)
	}
}

func rangeTable(first, last rune) *unicode.RangeTable {
	return &unicode.RangeTable{R32: []unicode.Range32{{Lo: uint32(first), Hi: uint32(last), Stride: 1}}}
}

func BenchmarkAppend(b *testing.B) {
	text := []byte(strings.Repeat("The rays of light, it's said, are not similar; they are 1704 of these.\n\tfunc f(x int) {}\n", 50))
	for _, name := range familyFiles {
		b.Run(name, func(b *testing.B) {
			e := load(b, familyFile(name)).NewEncoder()
			var ids []int32
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				ids = e.Append(ids[:0], text)
			}
		})
	}
}

// Training tells how many tokens there are.
func TestTrainingTellsProgress(t *testing.T) {
	trainer, err := NewTrainer(300)
	if err != nil {
		t.Fatal(err)
	}
	trainer.Add([]byte("the quick brown fox jumps over the lazy dog and the slow old cow walks around the other sleepy animals"))
	last := 0
	trainer.Told = func(done, all int) {
		if done <= last || all != 300 {
			t.Errorf("%d of %d after %d", done, all, last)
		}
		last = done
	}
	if v := trainer.Train(); last == 0 || last > len(v.Tokens) {
		t.Errorf("told of %d tokens of %d", last, len(v.Tokens))
	}
}
