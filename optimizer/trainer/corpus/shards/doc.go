// Package shards is a corpus of tokens in parts that travel: files that are named by
// their BLAKE3 hashes, and a manifest that lists them. The hash of the manifest names the
// corpus. Whoever has the manifest can tell whether a shard is the right one, wherever it
// came from.
//
// A shard is tokens, each of 2 or 4 bytes in little-endian order, and nothing else. Some
// shards are held out for good: nobody trains on them, and everybody measures with them.
//
// A mixture is several corpora with weights. Each row of a batch is from one of them, which
// its weight draws, and each of them has shards that are held out.
//
// Files, each may use those above it:
//
//	manifest, mixture  the list of shards, and corpora with weights
//	window             which tokens a row has
//	dir                a corpus in a folder
//	source             batches, with shards that are fetched
//	heldout            text to measure with
package shards
