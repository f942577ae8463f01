// Package documents reads text that others made, one document at a time and in bounded memory: text and code, JSON lines,
// Parquet, and the files of tokens of nanoGPT and llm.c. It is the one reader of text of all commands.
//
// A file's first bytes say what it is, and its name only what they cannot. Packings are undone, UTF-16 and UTF-32 with a mark
// become UTF-8, and what is no text is refused, or left out if it was found in a folder. A Tally counts all that.
//
// A document is what its author ended: a file, a line of JSON, a row. A book would be one document, so files of text are cut at
// blank lines into documents of up to MaxText bytes.
//
// Files, each may use those above it:
//
//	tally  what is counted
//	list  which files inputs name
//	content, reader, jsonlines, parquet, tokens  what a file is, and a reader of each format
package documents
