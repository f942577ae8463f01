package token

import (
	"sync"
	"unicode/utf8"
)

// class is what the patterns of the pre-tokenizers tell runes apart by.
type class uint8

const (
	other  class = iota // neither of the following; a byte that is not UTF-8 too
	letter              // \p{L}
	number              // \p{N}
	space               // \s

	classMask      class = 3
	digitFlag      class = 4  // the step Digits sets it apart
	movedFlag      class = 8  // its combining class is not 0
	decomposedFlag class = 16 // it has a canonical decomposition

	pageBits   = 8
	pageLength = 1 << pageBits
)

type runeRange struct{ first, last rune }

// classes has the class and flags of every rune, in pages that are shared where they
// are alike.
type classes [(utf8.MaxRune + 1) >> pageBits]*[pageLength]class

var runeClasses = sync.OnceValue(func() *classes {
	flat := make([]class, utf8.MaxRune+1)
	for _, t := range []struct {
		ranges []runeRange
		bits   class
	}{{letters, letter}, {numbers, number}, {spaces, space}, {digits, digitFlag}, {moved, movedFlag}, {decomposed, decomposedFlag}} {
		for _, r := range t.ranges {
			for c := r.first; c <= r.last; c++ {
				flat[c] |= t.bits
			}
		}
	}
	var all classes
	known := map[[pageLength]class]*[pageLength]class{}
	for i := range all {
		page := [pageLength]class(flat[i*pageLength:])
		if known[page] == nil {
			known[page] = &page
		}
		all[i] = known[page]
	}
	return &all
})

// flags returns the class and flags of the first rune of a text, and its length. A text
// has at least one byte.
func (c *classes) flags(text []byte) (class, int) {
	if b := text[0]; b < utf8.RuneSelf {
		return c[0][b], 1
	}
	r, size := utf8.DecodeRune(text)
	if r == utf8.RuneError && size == 1 {
		return other, 1
	}
	return c[r>>pageBits][r&(pageLength-1)], size
}

// at returns the class of the first rune of a text and its length, and none of an
// empty one.
func (c *classes) at(text []byte) (class, int) {
	if len(text) == 0 {
		return none, 0
	}
	k, size := c.flags(text)
	return k & classMask, size
}

// none is the class of what is not there.
const none class = 0xff

// run returns the length of the runes of class k that a text begins with.
func (c *classes) run(text []byte, k class) int {
	ascii := c[0]
	for at := 0; at < len(text); {
		if b := text[at]; b < utf8.RuneSelf {
			if ascii[b]&classMask != k {
				return at
			}
			at++
			continue
		}
		found, size := c.flags(text[at:])
		if found&classMask != k {
			return at
		}
		at += size
	}
	return len(text)
}
