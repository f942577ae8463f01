// Gen writes the assembly of package tensor and its Go declarations. Run it with go
// generate in the folder of that package.
//
// For amd64 each kernel is described once and emitted for AVX-512 and for AVX2 with FMA;
// isa holds what differs. The files neon*.go describe the kernels for arm64.
//
// Files, each may use those above it:
//
//	isa                      what differs between AVX-512 and AVX2
//	blocks                   loops over blocks
//	encode                   instructions that avo does not know
//	vector                   element-wise kernels
//	exp                      exponentials
//	adamw                    steps of AdamW
//	quant, topk, huff, wide  kernels of the codecs and of the fold
//	pack, gemm, amx          the matrix product
//	peak                     what a core gives at most
//	neon                     a file for arm64
//	neon_isa                 its instructions
//	neon_vector              element-wise kernels for arm64
//	neon_exp, neon_adamw, neon_wide  more of them
//	neon_pack, neon_gemm, neon_peak  the matrix product for arm64
//	main                     write all of them
package main
