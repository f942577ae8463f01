// Package token turns text into the numbers that a model reads, and back. There
// are two tokenizers: Byte, whose tokens are bytes, and BPE, a byte-level BPE as
// Hugging Face's tokenizer.json describes it.
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
// Files, each may use those above it:
//
//	classes       classes of runes
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
