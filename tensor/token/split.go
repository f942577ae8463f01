package token

import (
	"bytes"
	"unicode/utf8"
)

// This file holds the pre-tokenizers: they cut a text into the words that merges do
// not cross. Each is the regular expression of a family, written out: a pattern is
// tried alternative by alternative, as the expression has them.

// splitter returns the length of the word that a text of at least one byte begins with.
type splitter func(c *classes, text []byte) int

// splitGPT2 is
// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func splitGPT2(c *classes, text []byte) int {
	if n := contraction(text, false); n > 0 {
		return n
	}
	k, size := c.at(text)
	if text[0] == ' ' {
		if next, more := c.at(text[1:]); next != space && next != none {
			k, size = next, 1+more
		}
	}
	if k == space {
		return trailing(c, text)
	}
	return size + c.run(text[size:], k)
}

// splitLlama3 is
// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func splitLlama3(c *classes, text []byte) int { return splitModern(c, text, 3) }

// splitQwen2 is the same with \p{N} for \p{N}{1,3}.
func splitQwen2(c *classes, text []byte) int { return splitModern(c, text, 1) }

func splitModern(c *classes, text []byte, atMost int) int {
	if n := contraction(text, true); n > 0 {
		return n
	}
	k, size := c.at(text)
	switch {
	case k == letter:
		return size + c.run(text[size:], letter)
	case k == number:
		for n := 1; n < atMost; n++ {
			next, more := c.at(text[size:])
			if next != number {
				break
			}
			size += more
		}
		return size
	}
	if text[0] != '\r' && text[0] != '\n' {
		if n := c.run(text[size:], letter); n > 0 {
			return size + n
		}
	}
	from := 0
	if text[0] == ' ' {
		from = 1
	}
	if n := c.run(text[from:], other); n > 0 {
		return from + n + newlines(text[from+n:])
	}
	if n := lastNewline(text[:c.run(text, space)]); n > 0 {
		return n
	}
	return trailing(c, text)
}

// splitNothing leaves a text whole.
func splitNothing(_ *classes, text []byte) int { return len(text) }

// splitSpace cuts before each space.
func splitSpace(_ *classes, text []byte) int {
	if n := bytes.IndexByte(text[1:], ' '); n >= 0 {
		return 1 + n
	}
	return len(text)
}

// trailing is \s+(?!\S)|\s+ : white space without its last rune, which belongs to the
// word that follows, unless there is no such word or no other white space.
func trailing(c *classes, text []byte) int {
	n := c.run(text, space)
	if n == len(text) {
		return n
	}
	if _, last := utf8.DecodeLastRune(text[:n]); last < n {
		return n - last
	}
	return n
}

// newlines returns how many of \r and \n a text begins with.
func newlines(text []byte) int {
	n := 0
	for n < len(text) && (text[n] == '\r' || text[n] == '\n') {
		n++
	}
	return n
}

// lastNewline returns the length of a text up to the last \r or \n with it, and 0
// where it has none.
func lastNewline(text []byte) int {
	n := len(text)
	for n > 0 && text[n-1] != '\r' && text[n-1] != '\n' {
		n--
	}
	return n
}

// contraction returns the length of an 's|'t|'re|'ve|'m|'ll|'d that a text begins with,
// in lower case or in any. The long s, U+017F, is an s in another case.
func contraction(text []byte, anyCase bool) int {
	if text[0] != '\'' || len(text) < 2 {
		return 0
	}
	lower := func(at int) byte {
		switch {
		case at >= len(text):
			return 0
		case anyCase && text[at] >= 'A' && text[at] <= 'Z':
			return text[at] + 'a' - 'A'
		}
		return text[at]
	}
	switch first, second := lower(1), lower(2); {
	case first == 's', first == 't', first == 'm', first == 'd':
		return 2
	case first == 'r' && second == 'e', first == 'v' && second == 'e', first == 'l' && second == 'l':
		return 3
	case anyCase && len(text) > 2 && text[1] == 0xc5 && text[2] == 0xbf: // the long s
		return 3
	}
	return 0
}
