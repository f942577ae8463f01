// Package tensor is the numeric ground floor: flat []float32 memory with named
// views, a worker pool, matrix multiplication and the element-wise loops of a
// training step.
//
// Each operation exists at least twice. The plain Go version is the judge: it
// says what the operation means, and it runs on every architecture. On amd64 the
// generated AVX2 and AVX-512 versions replace it where the CPU has them, on arm64 the
// NEON version; tests compare every version with the judge. [Kernel] names the one in
// use, the environment variable ATOLL_KERNEL forces one, and the build tag purego
// leaves the assembly out.
//
// Element-wise operations and reductions give the same bits on every kernel and
// architecture: they round after each multiplication, or keep products exact in
// float64, and sum over a fixed number of lanes. [Gemm] does not. Its AVX2, AVX-512
// and NEON versions agree to the bit, for any number of threads. But they fuse
// multiply and add, and the plain version does not.
//
// [BF16] rounds the operands of products to bfloat16 and adds up in float32. On tile registers (AMX) that is several
// times faster. The plain version does what the instruction does, so that both give the same bits; [FastBF16] says
// whether the instruction is there.
//
// [Lanes], [AxpyWide] and the other operations in float64 are for the fold, on
// which peers must agree to the bit. [Pack4], [HuffDecode] and their like are the
// loops of package codec.
//
// Shapes are row-major with the last dimension contiguous. Lengths that do not
// fit are programming errors and panic with the operation and the numbers.
//
// Files, each may use those above it:
//
//	floats, floats_linux, floats_other  memory in large pages
//	slab                       flat memory with named views
//	workspace                  memory for what is done often
//	pool                       loops over several cores
//	gemm                       products
//	kernel                     the operations that a kernel implements
//	vector                     sums and scaling
//	rows                       operations on rows
//	exp                        exponentials
//	wide                       folds in float64
//	quant                      quantised blocks
//	topk                       the largest values of a block
//	huff                       loops of the Huffman coder
//	gemm_go                    plain products
//	bf16                       values of bfloat16, and the plain product of them
//	adamw                      steps of AdamW
//	gemm_tiled                 products by tiles
//	gemm_ahead                 ask for memory ahead of time
//	gemm_pack                  operands in the order of the loops
//	amx, amx_linux, amx_other  whether there are tile registers
//	precision, peak            float32 and bfloat16, and what a core gives of each
//	gemm_amx                   products on tile registers
//	neon_arm64                 loops of NEON, and the values that fill no register
//	choose, kernel_amd64, kernel_arm64, kernel_noasm  which kernels this machine has, and the one in use
package tensor
