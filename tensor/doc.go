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
package tensor
