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
package token
