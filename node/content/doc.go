// Package content keeps files that are named by their BLAKE3 hashes: the shards of a run's
// corpus. They come in parts, from peers, and are given in parts. Their bytes are bounded; what is
// needed least goes first.
//
// A whole file is NAME.bin in the content store's folder, with its hash as name, and nothing
// around it: other programs read it as it is. One that is still coming is NAME.part: the
// file's bytes, with holes, and behind them what is known of it. So a process that was killed
// goes on where it was. Files of the user may be linked, wherever they are and whatever they are
// called. The content store does not touch them.
package content
