// Package documents reads corpora that others made, one document at a time and in
// bounded memory: text and code, JSON lines, Parquet, either of the first two packed with
// gzip or Zstandard, and the files of tokens of nanoGPT and llm.c.
//
// A document is what its author ended: a file, a line of JSON, a row. Long texts are the
// exception: a book would be one document, so files of text are cut at blank lines into
// documents of up to MaxText bytes.
package documents
