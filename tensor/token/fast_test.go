package token

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPairTable: it finds what a map finds, and nothing else.
func TestPairTable(t *testing.T) {
	id := rapid.Int32Range(0, 20)
	rapid.Check(t, func(t *rapid.T) {
		merges := map[pair]merge{}
		for i := range rapid.IntRange(0, 300).Draw(t, "merges") {
			merges[pair{id.Draw(t, "left"), id.Draw(t, "right")}] = merge{int32(i), int32(2 * i)}
		}
		table := newPairTable(merges)
		for left := range int32(22) {
			for right := range int32(22) {
				p := pair{left, right}
				want, known := merges[p]
				if got, ok := table.find(p); ok != known || got != want {
					t.Fatalf("pair %v: %v %v, want %v %v", p, got, ok, want, known)
				}
			}
		}
	})
}

// TestShortWords: a word that is found has the tokens that it was kept with, and those that were kept last are found.
func TestShortWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, kept, last := newWordCache(), map[string][]int32{}, ""
		bytes := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 'b', 0xff}), 1, maxShortWord)
		for range rapid.IntRange(1, 60).Draw(t, "words") {
			word := bytes.Draw(t, "word")
			s := shorten(word)
			got, ok := c.find(&s)
			if ok && !slices.Equal(got, kept[string(word)]) || !ok && string(word) == last {
				t.Fatalf("word %q has %v, %v, want %v", word, got, ok, kept[string(word)])
			}
			if !ok {
				last = string(word)
				kept[last] = rapid.SliceOfN(rapid.Int32(), 1, maxShortTokens).Draw(t, "tokens")
				c.keep(s, kept[last])
			}
		}
	})
}

// TestKnownWordsGiveTheSameTokens: an encoder that met words before gives what a new one gives.
func TestKnownWordsGiveTheSameTokens(t *testing.T) {
	tokenizer := load(t, familyFile(familyFiles[0]))
	used := tokenizer.NewEncoder()
	text := rapid.Custom(func(t *rapid.T) []byte {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{" the", "the", " of", "light", "\n\n", " ", "1704", "antidisestablishmentarianism", "\xff\xfe", "é", "日本語", "==", "\t\t\tx", "'s"}), 0, 40)
		return []byte(strings.Join(words.Draw(t, "words"), ""))
	})
	rapid.Check(t, func(t *rapid.T) {
		b := text.Draw(t, "text")
		if got, want := used.Append(nil, b), tokenizer.NewEncoder().Append(nil, b); !slices.Equal(got, want) {
			t.Fatalf("%q became %v, want %v", b, got, want)
		}
	})
}
