package token

import (
	"bytes"
	"strings"
)

// Tokenizer turns text into tokens and back. It is immutable: any number of
// goroutines may use one.
type Tokenizer interface {
	// Size is the number of ids: they are 0 to Size()-1.
	Size() int
	// Bytes is the text that a token stands for, and nil where an id has none. The
	// caller must not change it.
	Bytes(id int32) []byte
	// Prefixed tells whether the first token of a document begins with a space that is not
	// in its text.
	Prefixed() bool
	// End is the token that follows a document, if there is one.
	End() (id int32, ok bool)
	// NewEncoder returns an encoder.
	NewEncoder() Encoder
}

// Encoder encodes text. It remembers what it met, so one goroutine uses it.
type Encoder interface {
	// Append adds the tokens of a text to dst.
	Append(dst []int32, text []byte) []int32
}

// Decode adds the text of a document's tokens to dst. Ids that stand for nothing are left out.
func Decode(t Tokenizer, dst []byte, ids []int32) []byte {
	for i, id := range ids {
		dst = append(dst, Text(t, i == 0, id)...)
	}
	return dst
}

// Text is Bytes without what the tokenizer put before a document, whose first token this is or not.
func Text(t Tokenizer, first bool, id int32) []byte {
	text := t.Bytes(id)
	if first && t.Prefixed() {
		text = bytes.TrimPrefix(text, []byte(" "))
	}
	return text
}

// TextSize is the bytes of text that tokens stand for where another one, or -1, is before
// them. The end of a document, -1 where there is none, is no text.
func TextSize(t Tokenizer, end, before int32, ids []int32) (size int64) {
	for _, id := range ids {
		if id != end {
			size += int64(len(Text(t, before < 0 || before == end, id)))
		}
		before = id
	}
	return size
}

// Byte is the tokenizer whose tokens are bytes: an id is the byte. It has no end token.
var Byte Tokenizer = byteTokenizer{}

type byteTokenizer struct{}

// byteText is the text of each byte token.
var byteText = func() (text [256]byte) {
	for i := range text {
		text[i] = byte(i)
	}
	return text
}()

func (byteTokenizer) Size() int { return len(byteText) }

func (byteTokenizer) Bytes(id int32) []byte {
	if id < 0 || int(id) >= len(byteText) {
		return nil
	}
	return byteText[id : id+1 : id+1]
}

func (byteTokenizer) Prefixed() bool { return false }

func (byteTokenizer) End() (int32, bool) { return 0, false }

func (byteTokenizer) NewEncoder() Encoder { return byteTokenizer{} }

func (byteTokenizer) Append(dst []int32, text []byte) []int32 {
	for _, b := range text {
		dst = append(dst, int32(b))
	}
	return dst
}

// endNames are what the families call the token after a document, in the order in
// which End looks for them: Gemma has the </s> of HTML too.
var endNames = strings.Fields("<|endoftext|> <|end_of_text|> <eos> </s>")
