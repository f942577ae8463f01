package token

import (
	"encoding/binary"
	"math/bits"
)

// wordCache has the tokens of short words that were met lately. Most words of a text are short, come again soon and
// have few tokens: such a word takes half a cache line here, and Go's map takes four times as long to find it.
//
// A bucket has the last two words that fell into it. A word that is gone is merged again.
type wordCache [][2]shortWord

const (
	wordBuckets    = 1 << 14 // 1 MiB, which stays near the processor
	maxShortWord   = 16      // bytes
	maxShortTokens = 3
)

// shortWord is a word and its tokens. Its bytes are first and last, as far as they are that many. One of
// no bytes is free.
type shortWord struct {
	first, last uint64
	ids         [maxShortTokens]int32
	bytes       uint8
	tokens      uint8
}

func newWordCache() wordCache { return make(wordCache, wordBuckets) }

// shorten returns a word of 1 to maxShortWord bytes without its tokens. No two words are alike in it.
func shorten(word []byte) (s shortWord) {
	n := len(word)
	s.bytes = uint8(n)
	switch {
	case n >= 8:
		s.first, s.last = binary.LittleEndian.Uint64(word), binary.LittleEndian.Uint64(word[n-8:])
	case n >= 4:
		s.first, s.last = uint64(binary.LittleEndian.Uint32(word)), uint64(binary.LittleEndian.Uint32(word[n-4:]))
	default:
		s.first, s.last = uint64(word[0])|uint64(word[n/2])<<8, uint64(word[n-1])
	}
	return s
}

// bucket is where a word is, if it is anywhere.
func (c wordCache) bucket(s *shortWord) *[2]shortWord {
	hi, lo := bits.Mul64(s.first^0x9e3779b97f4a7c15, s.last^0xbf58476d1ce4e5b9^uint64(s.bytes)<<56)
	return &c[(hi^lo)%wordBuckets]
}

func (s *shortWord) same(o *shortWord) bool {
	return s.first == o.first && s.last == o.last && s.bytes == o.bytes
}

// find returns the tokens of a word that is there.
func (c wordCache) find(s *shortWord) ([]int32, bool) {
	b := c.bucket(s)
	for i := range b {
		if b[i].same(s) {
			return b[i].ids[:b[i].tokens], true
		}
	}
	return nil, false
}

// keep keeps a word whose tokens fit, in place of the older one of its bucket.
func (c wordCache) keep(s shortWord, ids []int32) {
	s.tokens = uint8(copy(s.ids[:], ids))
	b := c.bucket(&s)
	b[0], b[1] = s, b[0]
}
