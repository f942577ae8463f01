// Package codec turns a vector of float32 into the bytes that travel between
// nodes, and back. Kinds differ in how many bits they spend on a value; all
// share one container.
//
// Files, each may use those above it:
//
//	quant         blocks with a scale
//	kind          how values are represented
//	huff, chunk   streams and their coding
//	codec         encode
//	planes        planes of bytes
//	topk, sparse  the largest values and their positions
//	pack          bytes that stay as they are
//	decode, add   decode, and add what is decoded
//
// # Container, version 1
//
// All integers are little endian.
//
//	byte     version (0xA1)
//	byte     kind
//	uint32   count of values
//	segment  for each run of up to 131072 values, in order
//
// A segment is a fixed sequence of byte streams whose raw lengths follow from
// the kind and the number n of values in the segment, so no length is stored:
//
//	f32    4 streams of n bytes: byte planes, least significant first
//	int4   low and high bytes of the scales (one a block), then n codes in
//	       ceil(n/2) bytes, the earlier value in the low nibble
//	sparse, sparse8
//	       low and high bytes of the levels (two a block of 4096), then low bytes
//	       of the gaps and codes, ceil(n/64) or ceil(n/8) bytes each
//
// Each stream is one chunk: a mode byte, then
//
//	0 stored   the raw bytes
//	1 run      one byte, repeated
//	2 huff0    uint24 length, then a Huffman table and four huff0 streams
//
// A huff0 chunk is never longer than the stored one would be, which is what
// makes MaxSize a bound.
//
// # Quantisation
//
// A block is 256 consecutive values (the last of a segment may be shorter)
// with one scale s, a non-negative bfloat16. Codes are q+8, |q| <= 7; the value
// is q*s, which float32 holds exactly. The code 0 does not exist and is refused.
// q is x/s rounded to nearest, ties to even.
//
// The scale is max|x| / 7.49, rounded up to a bfloat16: the extremes then round down onto 7 with the same error of at
// most s/2 as every other value, and no clamp is needed. The usual max|x| / 7
// has a step 7 % coarser and gains nothing by it. Clipping to the
// step of least squared error gains accuracy and pays it back in bytes,
// because the step decides the entropy of the codes: see TestScaleChoice.
//
// # Sparse
//
// A block is 4096 consecutive values (the last of a segment may be shorter). The 64th
// part of greatest magnitude travels, rounded up, and the others decode as 0. The
// density and the two bits for each are from SparseLoCo (arXiv 2508.15706). With
// sparse8 the 8th part travels: it takes a quarter of the bytes of int4. A caller must
// give what does not travel to a later Encode: a delta is worth little without the
// rest of those before it.
//
// What travels is a sign and one of two levels of the block, in bfloat16. The levels are
// the means of the smaller and of the larger magnitudes, parted where the squared error
// is least. That costs no bytes, unlike in int4, as the number of values does not
// depend on the levels. The less of the squared norm is left of a delta, the sooner
// feeding it back ends.
//
// Positions are gaps, the number of values skipped. Their low bytes are one stream. The
// other bits, 0 for all but 2 % of evenly spread values, ride on the codes. Bits for each
// normal value that travels (TestSparsePositions):
//
//	sparse                                   9.7
//	sparse8                                  6.3
//	gaps in one stream, where 255 lengthens  9.7, but no length follows from n
//	positions of 12 bits                     13.9
//
// The streams follow from the values: Decode refuses others. Modes of chunks are an
// encoder's choice, as for all kinds.
//
// # Packed bytes
//
// What has to stay as it is to the bit, such as a tip, is packed without a container: the bytes as
// four streams, each a chunk unless it is empty. Pack takes any bytes, and saves
// where they are values of float32. For normal values that is 16 % (TestPackSizes).
//
// # What is promised
//
// Encode and Decode give the same bits on every architecture: products that
// are added to are rounded first, and no math function but conversions is
// used. Decode accepts exactly what Check accepts, never panics, allocates
// nothing that depends on its input, and delivers finite values only.
//
// # What makes it fast
//
// The kernels of package tensor quantise, block by block. Entropy coding takes most
// of the time that is left. Package huff0 makes and checks the tables. Loops of package
// tensor write the codes, and read eight streams at once, those of two segments. If a
// kernel has no such loops, or they do not decode a stream to its last bit, huff0 does
// that as well, with the same bytes and verdicts.
//
// Two segments are decoded at a time, and used in pieces of PieceLen values while they
// are in the cache. A Reader keeps the streams for further readings, which then need no
// entropy coding.
package codec
