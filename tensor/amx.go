//go:build amd64 && !purego

package tensor

import "github.com/klauspost/cpuid/v2"

// amxRefused says why there are no products in tile registers (AMX); it is empty where there are.
var amxRefused = requestAMX()

// requestAMX asks for tile registers where the processor has what the kernel uses.
func requestAMX() string {
	if !cpuid.CPU.Supports(cpuid.AMXTILE, cpuid.AMXBF16, cpuid.AVX512BF16, cpuid.AVX512F, cpuid.AVX512BW) {
		return "this processor has no AMX with bfloat16"
	}
	return permitTiles()
}

func whyPlainBF16() string {
	if amxRefused != "" {
		return amxRefused
	}
	return "the kernel " + use.name + " was asked for"
}
