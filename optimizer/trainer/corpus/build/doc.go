// Package build makes a corpus of documents. It reads them once, in bounded memory, and
// can be interrupted: what it has done is in the folder, and it goes on from there.
//
// The order of a corpus is the order of the hashes of its documents, salted with a seed.
// So it does not depend on the order of inputs, on how many cores encode, or on where a
// build was interrupted, and a document that comes twice is there once. The first
// documents in that order are held out: the same ones, whatever the tokenizer.
package build
