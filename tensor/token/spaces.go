package token

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// mark is what SentencePiece writes for a space in tokens. The encoder has spaces in its place, also where a text
// has the mark: tokens cannot tell them apart.
const mark = "▁"

// appendSpaced adds a text with spaces for marks to dst.
func appendSpaced(dst, text []byte) []byte {
	for {
		before, after, found := bytes.Cut(text, []byte(mark))
		dst = append(dst, before...)
		if !found {
			return dst
		}
		dst, text = append(dst, ' '), after
	}
}

// byteToken is the token of a byte that is of no rune with a token.
func byteToken(b byte) string { return fmt.Sprintf("<0x%02X>", b) }

// byteOf is the way back.
func byteOf(token string) (byte, bool) {
	digits, ok := strings.CutPrefix(token, "<0x")
	b, err := strconv.ParseUint(strings.TrimSuffix(digits, ">"), 16, 8)
	return byte(b), ok && err == nil && len(token) == len("<0x00>") && strings.HasSuffix(token, ">")
}
