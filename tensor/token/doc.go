// Package token turns text into the numbers that a model reads, and back. There
// are two tokenizers: Byte, whose tokens are bytes, and BPE, a byte-pair encoding as
// Hugging Face's tokenizer.json describes it: byte-level, or of SentencePiece with byte
// fallback.
//
// The judge of BPE is the tokenizers library that such files are made for: the
// ids are its ids, without the special tokens that a post-processor adds. Parse
// takes the families of tokenizers on which the two were compared, which Families
// lists, and refuses every other one by name. Truncation and padding of a file are
// ignored: they are about requests, and a corpus has none.
//
// The judge reads Unicode strings. This package reads bytes: what is not UTF-8 is
// kept byte by byte, and comes back so.
//
// Tokens of SentencePiece have the mark ▁ for a space, so a ▁ in a text comes back as a
// space. Llama 2 and Mistral put a space before a text; Mistral puts none where there is
// one. It is no text: Decode and TextSize leave out the first space of a document. Llama 2
// puts one after each added token in a text too, which comes back, as from the judge.
// Without a pre-tokenizer a word is as long as a text. It is cut where two runes meet that
// no merge joins: no token crosses such a place, so the ids are those of the whole.
//
// Files, each may use those above it:
//
//	classes       classes of runes
//	spaces        marks for spaces, and tokens of bytes
//	split         cut a text into words
//	family, file  tokenizers of one origin, and their files
//	wordcache     words met lately
//	added         find added tokens
//	token         a tokenizer, and that of bytes
//	nfc           canonical composition
//	pairs         merges by pair
//	merger        merge the bytes of a word
//	bpe           the tokenizer of merges
//	parse         read tokenizer.json
//	train         make a tokenizer of a text
//	write         write tokenizer.json
package token
