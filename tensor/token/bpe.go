package token

import (
	"bytes"
	"unicode/utf8"
)

// BPE is a byte-pair encoding. A text is cut at added tokens, then into words; of the bytes
// of a word, or of its runes, neighbours are merged in the order in which the merges were
// learned.
type BPE struct {
	family family
	texts  [][]byte         // by id
	words  map[string]int32 // the vocabulary, if words in it are not merged; or nil
	bytes  [256]int32       // ids of single bytes, as far as they are no runes that have ids
	runes  *pairTable       // ids of runes, as pairs of a rune and 0; nil: a word begins as bytes
	joined *pairTable       // pairs of runes that a merge joins
	merges *pairTable

	raw        matcher // added tokens that are looked for before the text is normalized,
	normalized matcher // and after it
	end        int32   // -1: none
}

// pair is two neighbours.
type pair struct{ left, right int32 }

// merge is what becomes of a pair. The one of the least rank goes first.
type merge struct{ rank, id int32 }

// Size is one more than the highest id.
func (t *BPE) Size() int { return len(t.texts) }

// Bytes is the text of a token.
func (t *BPE) Bytes(id int32) []byte {
	if id < 0 || int(id) >= len(t.texts) {
		return nil
	}
	return t.texts[id]
}

// End is the token after a document.
func (t *BPE) End() (int32, bool) { return max(t.end, 0), t.end >= 0 }

// Prefixed tells whether a space that is not in the text begins the first token of a document.
func (t *BPE) Prefixed() bool { return t.family.prefix != noPrefix }

// Family is the name of the family, one of Families.
func (t *BPE) Family() string { return t.family.name }

// NewEncoder returns an encoder.
func (t *BPE) NewEncoder() Encoder {
	e := &encoder{t: t, classes: runeClasses(), short: newWordCache(), known: map[string]span{}}
	if t.family.normal == "NFC" {
		e.composer = composing()
	}
	return e
}

// Words of a text repeat. The encoder keeps the tokens of the words that it met. Those that wordCache does not
// take are in a map: so many of them, which is beyond what a text uses often, and no longer ones, which
// seldom come twice.
const (
	maxKnownWords = 1 << 16
	maxKnownBytes = 64
)

type encoder struct {
	t        *BPE
	classes  *classes
	composer *composer // nil: texts are not normalized

	short  wordCache
	known  map[string]span // words -> where tokens has their ids
	tokens []int32

	merger     merger
	normalized []byte
	begun      bool // what comes is not the start of the text
}

type span struct{ from, to int32 }

// Append adds the tokens of a text to dst.
func (e *encoder) Append(dst []int32, text []byte) []int32 {
	e.begun = false
	return e.cut(dst, text, &e.t.raw, (*encoder).segment)
}

// cut encodes text with added tokens of one kind. What is between them has an encoder.
func (e *encoder) cut(dst []int32, text []byte, added *matcher, between func(*encoder, []int32, []byte) []int32) []int32 {
	for len(text) > 0 {
		at, length, id := added.find(text)
		dst = between(e, dst, text[:at])
		if length > 0 {
			dst = append(dst, id)
		}
		text, e.begun = text[at+length:], true
	}
	return dst
}

// segment encodes text without added tokens of the first kind.
func (e *encoder) segment(dst []int32, text []byte) []int32 {
	text = e.normal(text)
	return e.cut(dst, text, &e.t.normalized, (*encoder).pieces)
}

// normal returns what the normalizer makes of a text.
func (e *encoder) normal(text []byte) []byte {
	switch {
	case e.composer != nil:
		e.normalized = e.composer.append(e.normalized[:0], text)
		return e.normalized
	case e.t.family.marked && !e.t.family.late:
		return e.prefixed(text)
	}
	return text
}

// pieces encodes text without added tokens. Where the family has the step Digits, every
// digit is a piece, and the words of what is between them are found piece by piece.
func (e *encoder) pieces(dst []int32, text []byte) []int32 {
	if e.t.family.late {
		text = e.prefixed(text)
	}
	if !e.t.family.digits {
		return e.piece(dst, text)
	}
	from := 0
	for at := 0; at < len(text); {
		flags, size := e.classes.flags(text[at:])
		if flags&digitFlag != 0 {
			dst = e.piece(dst, text[from:at])
			dst = e.word(dst, text[at:at+size])
			from = at + size
		}
		at += size
	}
	return e.piece(dst, text[from:])
}

// prefixed returns a text with spaces for marks, after the space that the family puts before it.
func (e *encoder) prefixed(text []byte) []byte {
	f := &e.t.family
	put := len(text) > 0 && (f.prefix == everyPrefix || f.prefix == firstPrefix && !e.begun)
	if f.late && (bytes.HasPrefix(text, []byte(" ")) || bytes.HasPrefix(text, []byte(mark))) {
		put = false
	}
	e.normalized = e.normalized[:0]
	if put {
		e.normalized = append(e.normalized, ' ')
	}
	e.normalized = appendSpaced(e.normalized, text)
	return e.normalized
}

func (e *encoder) piece(dst []int32, text []byte) []int32 {
	for len(text) > 0 {
		n := e.t.family.split(e.classes, text)
		if e.t.runes == nil {
			dst = e.word(dst, text[:n])
		} else {
			dst = e.runs(dst, text[:n])
		}
		text = text[n:]
	}
	return dst
}

// runs encodes a word that may be as long as a text: in parts that no merge joins, which are short and come again.
func (e *encoder) runs(dst []int32, word []byte) []int32 {
	if id, ok := e.t.words[string(word)]; ok {
		return append(dst, id)
	}
	for len(word) > 0 {
		r, n := utf8.DecodeRune(word)
		for n < len(word) {
			next, size := utf8.DecodeRune(word[n:])
			if _, ok := e.t.joined.find(pair{r, next}); !ok {
				break
			}
			r, n = next, n+size
		}
		dst = e.word(dst, word[:n])
		word = word[n:]
	}
	return dst
}

func (e *encoder) word(dst []int32, word []byte) []int32 {
	if len(word) == 1 {
		return append(dst, e.t.bytes[word[0]])
	}
	if len(word) > maxShortWord {
		return e.longWord(dst, word)
	}
	short := shorten(word)
	if ids, ok := e.short.find(&short); ok {
		return append(dst, ids...)
	}
	from := len(dst)
	dst = e.longWord(dst, word)
	if ids := dst[from:]; len(ids) <= maxShortTokens {
		e.short.keep(short, ids)
	}
	return dst
}

// longWord is word for one that wordCache does not have.
func (e *encoder) longWord(dst []int32, word []byte) []int32 {
	if s, ok := e.known[string(word)]; ok {
		return append(dst, e.tokens[s.from:s.to]...)
	}
	from := len(dst)
	dst = e.merged(dst, word)
	if ids := dst[from:]; len(word) <= maxKnownBytes && (len(word) > maxShortWord || len(ids) > maxShortTokens) {
		e.keep(word, ids)
	}
	return dst
}

func (e *encoder) keep(word []byte, ids []int32) {
	if len(e.known) == maxKnownWords {
		clear(e.known)
		e.tokens = e.tokens[:0]
	}
	from := int32(len(e.tokens))
	e.tokens = append(e.tokens, ids...)
	e.known[string(word)] = span{from, int32(len(e.tokens))}
}

func (e *encoder) merged(dst []int32, word []byte) []int32 {
	symbols := e.merger.symbols[:0]
	if e.t.runes != nil {
		return e.merger.append(dst, e.t.begin(symbols, word), e.t.merges)
	}
	if id, ok := e.t.words[string(word)]; ok {
		return append(dst, id)
	}
	for _, b := range word {
		symbols = add(symbols, e.t.bytes[b])
	}
	return e.merger.append(dst, symbols, e.t.merges)
}

// begin adds the runes of a word, and the bytes of those that are no tokens.
func (t *BPE) begin(symbols []symbol, word []byte) []symbol {
	for len(word) > 0 {
		r, size := utf8.DecodeRune(word)
		if found, ok := t.runes.find(pair{r, 0}); ok && (size > 1 || r < utf8.RuneSelf) {
			symbols = add(symbols, found.id)
		} else {
			for _, b := range word[:size] {
				symbols = add(symbols, t.bytes[b])
			}
		}
		word = word[size:]
	}
	return symbols
}
