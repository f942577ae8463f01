package corpus

import (
	"bytes"
	"iter"
	"unicode"
	"unicode/utf8"
)

// minWord is the shortest word, in letters, that WordsIn looks up: shorter
// ones are found by chance.
const minWord = 3

// WordsIn returns the share of the words in text, of three letters or more,
// that occur as words in the corpus, whatever their case. A word is a run of
// letters. It is 0 where text has no such word.
func (c *Corpus) WordsIn(text []byte) float64 {
	wanted := map[string]int{} // lower-case word -> how often it is in text
	total := 0
	for word := range words(text) {
		wanted[string(bytes.ToLower(word))]++
		total++
	}
	if total == 0 {
		return 0
	}
	found := 0
	for word := range words(c.data) {
		key := string(bytes.ToLower(word))
		found += wanted[key]
		delete(wanted, key)
	}
	return float64(found) / float64(total)
}

// words yields the runs of at least minWord letters in text.
func words(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(text) > 0 {
			start := bytes.IndexFunc(text, unicode.IsLetter)
			if start < 0 {
				return
			}
			text = text[start:]
			word := text[:letters(text)]
			text = text[len(word):]
			if utf8.RuneCount(word) >= minWord && !yield(word) {
				return
			}
		}
	}
}

// letters returns the length in bytes of the run of letters that text begins with.
func letters(text []byte) int {
	end := bytes.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	if end < 0 {
		return len(text)
	}
	return end
}
