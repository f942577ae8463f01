package main

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"atoll/tensor/token"
)

func byteTokens(text string) []int32 { return token.Byte.NewEncoder().Append(nil, []byte(text)) }

// written is what a utf8Writer makes of tokens.
func written(tokens ...int32) string {
	var b strings.Builder
	w := utf8Writer{w: &b}
	for _, id := range tokens {
		w.token(token.Byte.Bytes(id))
	}
	if err := w.end(); err != nil {
		panic(err)
	}
	return b.String()
}

func TestUTF8Writer(t *testing.T) {
	for _, c := range []struct {
		tokens []int32
		want   string
	}{
		{byteTokens("plain, ünï, 水\n\t"), "plain, ünï, 水\n\t"},
		{[]int32{0xff, 'a'}, "\ufffda"},
		{[]int32{0xe6, 0xb0}, "\ufffd\ufffd"}, // the start of a character, and no more
		{[]int32{0xe6, 'a'}, "\ufffda"},
		{[]int32{'a', 300, 'b'}, "a\ufffdb"},
		{[]int32{0x1b, '[', '2', 'J'}, "\ufffd[2J"}, // would clear a terminal
	} {
		if got := written(c.tokens...); got != c.want {
			t.Errorf("%v: %q, want %q", c.tokens, got, c.want)
		}
	}
}

// Text comes out as it went in, whatever the pieces.
func TestUTF8WriterKeepsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return !unicode.IsControl(r) })).Draw(t, "text")
		if got := written(byteTokens(text)...); got != strings.ToValidUTF8(text, "\ufffd") {
			t.Fatalf("%q, want %q", got, text)
		}
	})
}
