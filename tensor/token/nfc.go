package token

import (
	"slices"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// This file is Unicode's canonical composition, NFC, as the judge has it. The data is
// that of x/text. Its NFC is not used for two reasons: it breaks runs of more than 30
// marks, which the judge does not, and it knows marks that are newer than the judge's.
// Those are left as they are: the flags of classes say which runes the judge knows.

// composer has what NFC needs to know.
type composer struct {
	classes *classes
	pairs   map[[2]rune]rune
	touched map[rune]bool // runes that may change, or what stands before them
}

var composing = sync.OnceValue(func() *composer {
	n := &composer{runeClasses(), map[[2]rune]rune{}, map[rune]bool{}}
	for _, r := range moved {
		n.touch(r)
	}
	for _, r := range decomposed {
		for c := r.first; c <= r.last; c++ {
			n.learn(c)
		}
	}
	n.touch(runeRange{hangulV, hangulV + hangulVs - 1})
	n.touch(runeRange{hangulT + 1, hangulT + hangulTs - 1})
	return n
})

func (n *composer) touch(r runeRange) {
	for c := r.first; c <= r.last; c++ {
		n.touched[c] = true
	}
}

// learn takes in a rune that has a decomposition. Where NFC keeps the rune, its last
// part composes with the rest.
func (n *composer) learn(c rune) {
	if isHangul(c) {
		return
	}
	parts := []rune(string(norm.NFD.PropertiesString(string(c)).Decomposition()))
	if norm.NFC.String(string(c)) != string(c) || len(parts) < 2 {
		n.touched[c] = true
		return
	}
	last := parts[len(parts)-1]
	first := []rune(norm.NFC.String(string(parts[:len(parts)-1])))
	n.pairs[[2]rune{first[0], last}] = c
	n.touched[last] = true
}

// firstTouched is the least rune that NFC may change.
const firstTouched = 0x300

// append adds the NFC of a text to dst.
func (n *composer) append(dst, text []byte) []byte {
	done, before := 0, 0 // what is in dst; where the last rune that NFC keeps begins
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r < firstTouched || !n.touched[r] {
			before = at
			if r == utf8.RuneError && size == 1 {
				before = at + 1
			}
			at += size
			continue
		}
		end := n.untouched(text, at+size)
		dst = append(dst, text[done:max(before, done)]...)
		dst = append(dst, n.compose(n.decompose(text[max(before, done):end]))...)
		done, before, at = end, end, end
	}
	return append(dst, text[done:]...)
}

// untouched returns the first place from at on with a rune that NFC keeps.
func (n *composer) untouched(text []byte, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if !n.touched[r] {
			break
		}
		at += size
	}
	return at
}

// decompose returns the canonical decomposition of a text, in canonical order.
func (n *composer) decompose(text []byte) []rune {
	var runes []rune
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		flags, _ := n.classes.flags(text)
		switch {
		case isHangul(r):
			runes = appendHangul(runes, r)
		case flags&decomposedFlag != 0:
			runes = append(runes, []rune(string(norm.NFD.Properties(text).Decomposition()))...)
		default:
			runes = append(runes, r)
		}
		text = text[size:]
	}
	for from := 0; from < len(runes); {
		to := from + 1
		for n.order(runes[from]) != 0 && to < len(runes) && n.order(runes[to]) != 0 {
			to++
		}
		slices.SortStableFunc(runes[from:to], func(a, b rune) int { return int(n.order(a)) - int(n.order(b)) })
		from = to
	}
	return runes
}

// order is the canonical combining class of a rune.
func (n *composer) order(r rune) uint8 {
	if n.classes[r>>pageBits][r&(pageLength-1)]&movedFlag == 0 {
		return 0
	}
	return norm.NFD.PropertiesString(string(r)).CCC()
}

// compose puts together what composes, in place. A rune composes with the last one of
// order 0 unless one between them has an order that is as high.
func (n *composer) compose(runes []rune) []byte {
	out, starter, last := runes[:0], -1, uint8(0)
	for _, r := range runes {
		order := n.order(r)
		if starter >= 0 && (last < order || len(out) == starter+1) {
			if c, ok := n.pair(out[starter], r); ok {
				out[starter] = c
				continue
			}
		}
		if last = order; order == 0 {
			starter = len(out)
		}
		out = append(out, r)
	}
	return []byte(string(out))
}

func (n *composer) pair(a, b rune) (rune, bool) {
	if c, ok := pairHangul(a, b); ok {
		return c, true
	}
	c, ok := n.pairs[[2]rune{a, b}]
	return c, ok
}

// Syllables of Hangul are composed by arithmetic: of a leading consonant, a vowel and
// perhaps a trailing consonant.
const (
	hangulS, hangulL, hangulV, hangulT = 0xac00, 0x1100, 0x1161, 0x11a7
	hangulLs, hangulVs, hangulTs       = 19, 21, 28
)

func isHangul(r rune) bool { return r >= hangulS && r < hangulS+hangulLs*hangulVs*hangulTs }

func appendHangul(dst []rune, r rune) []rune {
	r -= hangulS
	dst = append(dst, hangulL+r/(hangulVs*hangulTs), hangulV+r/hangulTs%hangulVs)
	if t := r % hangulTs; t > 0 {
		dst = append(dst, hangulT+t)
	}
	return dst
}

func pairHangul(a, b rune) (rune, bool) {
	switch {
	case a >= hangulL && a < hangulL+hangulLs && b >= hangulV && b < hangulV+hangulVs:
		return hangulS + ((a-hangulL)*hangulVs+b-hangulV)*hangulTs, true
	case isHangul(a) && (a-hangulS)%hangulTs == 0 && b > hangulT && b < hangulT+hangulTs:
		return a + b - hangulT, true
	}
	return 0, false
}
